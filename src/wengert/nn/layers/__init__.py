"""Layers, with PyTorch's names, arguments and initial values.

activations          activations and losses as modules
conv                 Conv1d ... ConvTranspose3d; convolutional.py: what they share
conv_base            What layers of convolutions over any number of axes have in common
dropout              Layers that drop at random in training and do nothing in evaluation: Dropout
                     and its kin
embedding            rows of a table that is learned, looked up by number
linear_and_shape     Linear, Bilinear, Flatten, ...; embedding.py
losses               activations and losses as modules
multihead_attention  MultiheadAttention
normalization        BatchNorm2d, LayerNorm, ...; dropouts.py: Dropout,
pooling              MaxPool1d ... AdaptiveAvgPool3d
positional_encoding  positional encodings, rotary embeddings
recurrent            RNN, GRU, LSTM; recurrence.py: what they share; cells.py: one step of them
recurrent_cells      one step of a recurrent layer, as a formula and as a module
recurrent_scan       sequences through layers, in several of them and in both directions
transformer          Transformer, its encoder and decoder; transformer_layers.py: one layer
transformer_layer    Layers of a Transformer: attention and a small network, each with a residual
                     connection
"""
