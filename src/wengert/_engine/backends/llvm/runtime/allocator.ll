define i64 @wengert_memory_trim(i64 %bound) {
entry:
  br label %more
more:
  %sum = phi i64 [0, %entry], [%next, %more]
  %went = call i64 @shrink(i64 %bound)
  %next = add i64 %sum, %went
  %done = icmp eq i64 %went, 0
  br i1 %done, label %end, label %more
end:
  ret i64 %sum
}
