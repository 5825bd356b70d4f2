define internal void @acquire(ptr %lock) {
entry:
  br label %try
try:
  %seen = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {i64, i1} %seen, 1
  br i1 %mine, label %done, label %wait
wait:
  %n = phi i64 [0, %try], [%next, %again]
  %next = add i64 %n, 1
  %late = icmp uge i64 %n, $spin_count
  br i1 %late, label %yield, label %spin
yield:
  call void @give_way()
  br label %again
spin:
  call void @pause()
  br label %again
again:
  %held = load atomic i64, ptr %lock monotonic, align 8
  %free = icmp eq i64 %held, 0
  br i1 %free, label %try, label %wait
done:
  ret void
}

define internal void @release(ptr %lock) alwaysinline {
entry:
  store atomic i64 0, ptr %lock release, align 8
  ret void
}
