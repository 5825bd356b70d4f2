define i64 @wengert_fingerprint(ptr %array, i64 %blocks) #1 {
entry:
  %address = getelementptr i8, ptr %array, i64 $data
  %data = load ptr, ptr %address, align 8
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %block]
  %a0 = phi <8 x i64> [splat (i64 1), %entry], [%b0, %block]
  %a1 = phi <8 x i64> [splat (i64 2), %entry], [%b1, %block]
  %a2 = phi <8 x i64> [splat (i64 3), %entry], [%b2, %block]
  %a3 = phi <8 x i64> [splat (i64 4), %entry], [%b3, %block]
  %more = icmp slt i64 %i, %blocks
  br i1 %more, label %block, label %end
block:
  %next = add i64 %i, 1
  %p0 = getelementptr [4 x <8 x i64>], ptr %data, i64 %i
  %p1 = getelementptr <8 x i64>, ptr %p0, i64 1
  %p2 = getelementptr <8 x i64>, ptr %p0, i64 2
  %p3 = getelementptr <8 x i64>, ptr %p0, i64 3
  %v0 = load <8 x i64>, ptr %p0, align 1
  %v1 = load <8 x i64>, ptr %p1, align 1
  %v2 = load <8 x i64>, ptr %p2, align 1
  %v3 = load <8 x i64>, ptr %p3, align 1
  %h0 = lshr <8 x i64> %v0, splat (i64 29)
  %h1 = lshr <8 x i64> %v1, splat (i64 29)
  %h2 = lshr <8 x i64> %v2, splat (i64 29)
  %h3 = lshr <8 x i64> %v3, splat (i64 29)
  %m0 = xor <8 x i64> %v0, %h0
  %m1 = xor <8 x i64> %v1, %h1
  %m2 = xor <8 x i64> %v2, %h2
  %m3 = xor <8 x i64> %v3, %h3
  %s0 = mul <8 x i64> %a0, splat (i64 $multiplier)
  %s1 = mul <8 x i64> %a1, splat (i64 $multiplier)
  %s2 = mul <8 x i64> %a2, splat (i64 $multiplier)
  %s3 = mul <8 x i64> %a3, splat (i64 $multiplier)
  %b0 = add <8 x i64> %s0, %m0
  %b1 = add <8 x i64> %s1, %m1
  %b2 = add <8 x i64> %s2, %m2
  %b3 = add <8 x i64> %s3, %m3
  br label %test
end:
  %lanes = alloca [4 x <8 x i64>], align 64
  %q1 = getelementptr <8 x i64>, ptr %lanes, i64 1
  %q2 = getelementptr <8 x i64>, ptr %lanes, i64 2
  %q3 = getelementptr <8 x i64>, ptr %lanes, i64 3
  store <8 x i64> %a0, ptr %lanes, align 64
  store <8 x i64> %a1, ptr %q1, align 64
  store <8 x i64> %a2, ptr %q2, align 64
  store <8 x i64> %a3, ptr %q3, align 64
  %found = call i64 @wengert_fingerprint_of_lanes(ptr %lanes)
  ret i64 %found
}

define i64 @wengert_fingerprint_of_lanes(ptr %lanes) #1 {
entry:
  br label %combine
combine:
  %k = phi i64 [0, %entry], [%after, %combine]
  %sum = phi i64 [0, %entry], [%new, %combine]
  %q = getelementptr i64, ptr %lanes, i64 %k
  %lane = load i64, ptr %q, align 8
  %high = lshr i64 %sum, 32
  %mixed = xor i64 %sum, %high
  %scaled = mul i64 %mixed, $multiplier
  %new = add i64 %scaled, %lane
  %after = add i64 %k, 1
  %done = icmp eq i64 %after, 32
  br i1 %done, label %exit, label %combine
exit:
  ret i64 %new
}
