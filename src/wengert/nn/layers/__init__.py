"""Layers, with PyTorch's names, arguments and initial values.

linear_and_shape     Linear, Bilinear, Flatten ...
activations          ReLU, Softmax ...
conv                 Conv1d ... ConvTranspose3d
spatial              layers over 1, 2 and 3 dimensions from one class
pooling              MaxPool1d ... AdaptiveAvgPool3d
normalization        BatchNorm2d, LayerNorm ...
dropout              Dropout, AlphaDropout ...
embedding            Embedding
positional_encoding  positional encodings, rotary embeddings
recurrent            RNN, GRU, LSTM
recurrent_cells      RNNCell, GRUCell, LSTMCell
recurrent_scan       several layers and both directions over a sequence
multihead_attention  MultiheadAttention
transformer          Transformer, its encoder and decoder
transformer_layer    TransformerEncoderLayer, TransformerDecoderLayer
losses               losses as modules
"""
