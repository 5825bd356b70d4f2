; The bits of a float32 as those of the nearest float16, the even one of two.
define internal i16 @nearest(i32 %bits) alwaysinline nounwind {
  %sign = lshr i32 %bits, 16
  %sign.only = and i32 %sign, 32768
  %size = and i32 %bits, 2147483647
  ; below 2**-14: added to 0.5, whose last bit is worth 2**-24, as that of a denormal half
  %number = bitcast i32 %size to float
  %sum = fadd float %number, 5.0e-01
  %sum.bits = bitcast float %sum to i32
  %denormal = sub i32 %sum.bits, 1056964608
  ; the exponent's bias is 15 and not 127; rounded in the 13 bits that are cut off
  %last = lshr i32 %size, 13
  %is.odd = and i32 %last, 1
  %half.unit = add i32 %is.odd, 4095
  %moved = sub i32 %size, 939524096
  %rounded = add i32 %moved, %half.unit
  %normal = lshr i32 %rounded, 13
  ; 65536 and more, infinity; a NaN stays one, with the upper bits of what it carries
  %carried = and i32 %last, 1023
  %nan = or i32 %carried, 32256
  %is.nan = icmp ugt i32 %size, 2139095040
  %is.large = icmp uge i32 %size, 1199570944
  %is.small = icmp ult i32 %size, 947912704
  %finite = select i1 %is.small, i32 %denormal, i32 %normal
  %bounded = select i1 %is.large, i32 31744, i32 %finite
  %result = select i1 %is.nan, i32 %nan, i32 %bounded
  %signed = or i32 %result, %sign.only
  %short = trunc i32 %signed to i16
  ret i16 %short
}

define internal float @widened(half %x) alwaysinline nounwind {
  %bits = bitcast half %x to i16
  %long = zext i16 %bits to i32
  %size = and i32 %long, 32767
  %sign = and i32 %long, 32768
  %sign.up = shl i32 %sign, 16
  %moved = shl i32 %size, 13
  ; times 2**112, which is exact and makes a denormal a normal number
  %number = bitcast i32 %moved to float
  %scaled = fmul float %number, 0x46F0000000000000
  %scaled.bits = bitcast float %scaled to i32
  %special = or i32 %moved, 2139095040
  %is.special = icmp uge i32 %size, 31744
  %chosen = select i1 %is.special, i32 %special, i32 %scaled.bits
  %signed = or i32 %chosen, %sign.up
  %result = bitcast i32 %signed to float
  ret float %result
}

define half @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %short = call i16 @nearest(i32 %bits)
  %result = bitcast i16 %short to half
  ret half %result
}

define half @__truncdfhf2(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %bits = bitcast float %near to i32
  %size = and i32 %bits, 2147483647
  %x.bits = bitcast double %x to i64
  %x.size = and i64 %x.bits, 9223372036854775807
  %back.bits = bitcast double %back to i64
  %back.size = and i64 %back.bits, 9223372036854775807
  ; to odd: towards zero, and then a last 1 if that was inexact
  %is.number = fcmp ord double %x, %x
  %is.larger = icmp ugt i64 %back.size, %x.size
  %beyond = and i1 %is.number, %is.larger
  %one = zext i1 %beyond to i32
  %towards.zero = sub i32 %bits, %one
  %inexact = fcmp one double %x, %back
  %last = zext i1 %inexact to i32
  %odd = or i32 %towards.zero, %last
  %short = call i16 @nearest(i32 %odd)
  %result = bitcast i16 %short to half
  ret half %result
}

define float @__extendhfsf2(half %x) nounwind {
  %result = call float @widened(half %x)
  ret float %result
}

define double @__extendhfdf2(half %x) nounwind {
  %near = call float @widened(half %x)
  %result = fpext float %near to double
  ret double %result
}
