define double @fma(double %a, double %b, double %c) nounwind {
entry:
  %naive.product = fmul double %a, %b
  %naive = fadd double %naive.product, %c
  %a.bits = bitcast double %a to i64
  %b.bits = bitcast double %b to i64
  %c.bits = bitcast double %c to i64
  %a.field.wide = lshr i64 %a.bits, 52
  %b.field.wide = lshr i64 %b.bits, 52
  %c.field.wide = lshr i64 %c.bits, 52
  %a.field = and i64 %a.field.wide, 2047
  %b.field = and i64 %b.field.wide, 2047
  %c.field = and i64 %c.field.wide, 2047
  %a.less = sub i64 %a.field, 1
  %b.less = sub i64 %b.field, 1
  %c.less = sub i64 %c.field, 1
  %a.normal = icmp ult i64 %a.less, 2046
  %b.normal = icmp ult i64 %b.less, 2046
  %c.normal = icmp ult i64 %c.less, 2046
  %ab.normal = and i1 %a.normal, %b.normal
  %normal = and i1 %ab.normal, %c.normal
  br i1 %normal, label %scale, label %simple
simple:
  ret double %naive
scale:
  %a.exponent = sub i64 %a.field, 1023
  %b.exponent = sub i64 %b.field, 1023
  %exponent = add i64 %a.exponent, %b.exponent
  %c.exponent.own = sub i64 %c.field, 1023
  %c.exponent = sub i64 %c.exponent.own, %exponent
  %c.large = icmp sgt i64 %c.exponent, 150
  br i1 %c.large, label %addend, label %compute
addend:
  ret double %c
compute:
  %c.tiny = icmp slt i64 %c.exponent, -150
  %c.clamped = select i1 %c.tiny, i64 -150, i64 %c.exponent
  %c.biased = add i64 %c.clamped, 1023
  %c.new = shl i64 %c.biased, 52
  %a.rest = and i64 %a.bits, -9218868437227405313
  %b.rest = and i64 %b.bits, -9218868437227405313
  %c.rest = and i64 %c.bits, -9218868437227405313
  %a.one = or i64 %a.rest, 4607182418800017408
  %b.one = or i64 %b.rest, 4607182418800017408
  %c.one = or i64 %c.rest, %c.new
  %x = bitcast i64 %a.one to double
  %y = bitcast i64 %b.one to double
  %w = bitcast i64 %c.one to double
  %x.scaled = fmul double %x, 134217729.0
  %x.diff = fsub double %x.scaled, %x
  %x.high = fsub double %x.scaled, %x.diff
  %x.low = fsub double %x, %x.high
  %y.scaled = fmul double %y, 134217729.0
  %y.diff = fsub double %y.scaled, %y
  %y.high = fsub double %y.scaled, %y.diff
  %y.low = fsub double %y, %y.high
  %u = fmul double %x, %y
  %hh = fmul double %x.high, %y.high
  %hl = fmul double %x.high, %y.low
  %lh = fmul double %x.low, %y.high
  %ll = fmul double %x.low, %y.low
  %e1 = fsub double %hh, %u
  %e2 = fadd double %e1, %hl
  %e3 = fadd double %e2, %lh
  %u.low = fadd double %e3, %ll
  %t = fadd double %w, %u.low
  %t.part = fsub double %t, %w
  %t.other = fsub double %t, %t.part
  %t.e1 = fsub double %w, %t.other
  %t.e2 = fsub double %u.low, %t.part
  %t.low = fadd double %t.e1, %t.e2
  %v = fadd double %u, %t
  %v.part = fsub double %v, %u
  %v.other = fsub double %v, %v.part
  %v.e1 = fsub double %u, %v.other
  %v.e2 = fsub double %t, %v.part
  %v.low = fadd double %v.e1, %v.e2
  %z = fadd double %t.low, %v.low
  %z.part = fsub double %z, %t.low
  %z.other = fsub double %z, %z.part
  %z.e1 = fsub double %t.low, %z.other
  %z.e2 = fsub double %v.low, %z.part
  %z.error = fadd double %z.e1, %z.e2
  %z.bits = bitcast double %z to i64
  %e.bits = bitcast double %z.error to i64
  %inexact = fcmp une double %z.error, 0.0
  %last = and i64 %z.bits, 1
  %even = icmp eq i64 %last, 0
  %odd.needed = and i1 %inexact, %even
  %signs = xor i64 %z.bits, %e.bits
  %opposite = icmp slt i64 %signs, 0
  %step = select i1 %opposite, i64 -1, i64 1
  %z.moved = add i64 %z.bits, %step
  %z.chosen = select i1 %odd.needed, i64 %z.moved, i64 %z.bits
  %z.odd = bitcast i64 %z.chosen to double
  %sum = fadd double %v, %z.odd
  %half = ashr i64 %exponent, 1
  %other = sub i64 %exponent, %half
  %half.biased = add i64 %half, 1023
  %other.biased = add i64 %other, 1023
  %half.bits = shl i64 %half.biased, 52
  %other.bits = shl i64 %other.biased, 52
  %half.power = bitcast i64 %half.bits to double
  %other.power = bitcast i64 %other.bits to double
  %once = fmul double %sum, %half.power
  %twice = fmul double %once, %other.power
  ret double %twice
}

define float @fmaf(float %a, float %b, float %c) nounwind {
entry:
  %x = fpext float %a to double
  %y = fpext float %b to double
  %w = fpext float %c to double
  %p = fmul double %x, %y
  %s = fadd double %p, %w
  %part = fsub double %s, %p
  %other = fsub double %s, %part
  %e1 = fsub double %p, %other
  %e2 = fsub double %w, %part
  %error = fadd double %e1, %e2
  %bits = bitcast double %s to i64
  %error.bits = bitcast double %error to i64
  %positive = fcmp ogt double %error, 0.0
  %negative = fcmp olt double %error, 0.0
  %inexact = or i1 %positive, %negative
  %last = and i64 %bits, 1
  %even = icmp eq i64 %last, 0
  %odd.needed = and i1 %inexact, %even
  %signs = xor i64 %bits, %error.bits
  %opposite = icmp slt i64 %signs, 0
  %step = select i1 %opposite, i64 -1, i64 1
  %moved = add i64 %bits, %step
  %chosen = select i1 %odd.needed, i64 %moved, i64 %bits
  %odd = bitcast i64 %chosen to double
  %result = fptrunc double %odd to float
  ret float %result
}

define ptr @memcpy(ptr %to, ptr %from, i32 %count) nounwind {
entry:
  %k = alloca i32
  store i32 0, ptr %k
  br label %head
head:
  %now = load i32, ptr %k
  %more = icmp ult i32 %now, %count
  br i1 %more, label %body, label %done
body:
  %source = getelementptr i8, ptr %from, i32 %now
  %byte = load volatile i8, ptr %source
  %target = getelementptr i8, ptr %to, i32 %now
  store i8 %byte, ptr %target
  %next = add i32 %now, 1
  store i32 %next, ptr %k
  br label %head
done:
  ret ptr %to
}

define ptr @memset(ptr %to, i32 %value, i32 %count) nounwind {
entry:
  %k = alloca i32
  %byte = trunc i32 %value to i8
  store i32 0, ptr %k
  br label %head
head:
  %now = load i32, ptr %k
  %more = icmp ult i32 %now, %count
  br i1 %more, label %body, label %done
body:
  %target = getelementptr i8, ptr %to, i32 %now
  store volatile i8 %byte, ptr %target
  %next = add i32 %now, 1
  store i32 %next, ptr %k
  br label %head
done:
  ret ptr %to
}

define void @__multi3(ptr %out, i64 %al, i64 %ah, i64 %bl, i64 %bh) nounwind {
entry:
  %a0 = and i64 %al, 4294967295
  %a1 = lshr i64 %al, 32
  %b0 = and i64 %bl, 4294967295
  %b1 = lshr i64 %bl, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %carry = lshr i64 %p00, 32
  %p01.low = and i64 %p01, 4294967295
  %p10.low = and i64 %p10, 4294967295
  %mid.part = add i64 %carry, %p01.low
  %mid = add i64 %mid.part, %p10.low
  %p00.low = and i64 %p00, 4294967295
  %mid.up = shl i64 %mid, 32
  %low = or i64 %p00.low, %mid.up
  %p01.high = lshr i64 %p01, 32
  %p10.high = lshr i64 %p10, 32
  %mid.high = lshr i64 %mid, 32
  %h1 = add i64 %p11, %p01.high
  %h2 = add i64 %h1, %p10.high
  %h3 = add i64 %h2, %mid.high
  %x = mul i64 %al, %bh
  %y = mul i64 %ah, %bl
  %h4 = add i64 %h3, %x
  %high = add i64 %h4, %y
  store i64 %low, ptr %out
  %place = getelementptr i8, ptr %out, i64 8
  store i64 %high, ptr %place
  ret void
}
