define internal ptr @clock_alloc(i64 %n) noinline nounwind {
entry:
  %more = add i64 %n, $header
  %block = call ptr @wengert_alloc(i64 %more)
  %none = icmp eq ptr %block, null
  br i1 %none, label %nothing, label %there
nothing:
  ret ptr null
there:
  store i64 %n, ptr %block
  %old = load i64, ptr @clock
  %new = add i64 %old, %n
  store i64 %new, ptr @clock
  %place = getelementptr i64, ptr @clock, i64 $peak
  %most = load i64, ptr %place
  %is_more = icmp sgt i64 %new, %most
  %peak = select i1 %is_more, i64 %new, i64 %most
  store i64 %peak, ptr %place
  %given = getelementptr i8, ptr %block, i64 $header
  ret ptr %given
}

define internal void @clock_free(ptr %given) noinline nounwind {
entry:
  %none = icmp eq ptr %given, null
  br i1 %none, label %done, label %there
there:
  %block = getelementptr i8, ptr %given, i64 -$header
  %n = load i64, ptr %block
  %old = load i64, ptr @clock
  %new = sub i64 %old, %n
  store i64 %new, ptr @clock
  call void @wengert_free(ptr %block)
  br label %done
done:
  ret void
}
