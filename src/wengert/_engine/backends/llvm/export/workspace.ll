define internal ptr @wengert_alloc(i64 %size, ptr %memory) nounwind {
entry:
  %rounded = add i64 %size, 63
  %whole = and i64 %rounded, -64
  %needed = add i64 %whole, 64
  %top = load ptr, ptr %memory
  %end.place = getelementptr i8, ptr %memory, i64 8
  %end = load ptr, ptr %end.place
  %last.place = getelementptr i8, ptr %memory, i64 16
  %end.number = ptrtoint ptr %end to i64
  %top.number = ptrtoint ptr %top to i64
  %left = sub i64 %end.number, %top.number
  %negative = icmp slt i64 %size, 0
  %large = icmp ugt i64 %needed, %left
  %refused = or i1 %negative, %large
  br i1 %refused, label %full, label %fits
full:
  ret ptr null
fits:
  %last = load ptr, ptr %last.place
  store ptr %last, ptr %top
  %free.place = getelementptr i8, ptr %top, i64 8
  store i64 0, ptr %free.place
  store ptr %top, ptr %last.place
  %new = getelementptr i8, ptr %top, i64 %needed
  store ptr %new, ptr %memory
  %block = getelementptr i8, ptr %top, i64 64
  ret ptr %block
}

define internal void @wengert_free(ptr %block, ptr %memory) nounwind {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %some
some:
  %own = getelementptr i8, ptr %block, i64 -64
  %own.free = getelementptr i8, ptr %own, i64 8
  store i64 1, ptr %own.free
  %last.place = getelementptr i8, ptr %memory, i64 16
  br label %check
check:
  %last = load ptr, ptr %last.place
  %empty = icmp eq ptr %last, null
  br i1 %empty, label %done, label %look
look:
  %free.place = getelementptr i8, ptr %last, i64 8
  %free = load i64, ptr %free.place
  %kept = icmp eq i64 %free, 0
  br i1 %kept, label %done, label %pop
pop:
  store ptr %last, ptr %memory
  %before = load ptr, ptr %last
  store ptr %before, ptr %last.place
  br label %check
done:
  ret void
}

define internal void @wengert_parallel(ptr %function, ptr %frame, i64 %start, i64 %stop, i64 %grain, i64 %threads, ptr %memory) nounwind {
entry:
  %some = icmp slt i64 %start, %stop
  br i1 %some, label %run, label %done
run:
  call void %function(ptr %frame, i64 %start, i64 %stop, i64 0, ptr %memory)
  br label %done
done:
  ret void
}

define internal i64 @wengert_parts(i64 %start, i64 %stop, i64 %grain, i64 %threads) nounwind {
entry:
  ret i64 1
}

define internal i64 @wengert_get_threads() nounwind {
entry:
  ret i64 1
}

define internal void @wengert_blas_enter(i64 %flops, i64 %threads) nounwind {
entry:
  ret void
}

define internal void @wengert_blas_leave() nounwind {
entry:
  ret void
}
