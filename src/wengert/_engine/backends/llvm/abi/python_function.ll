declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; The first byte of an array, and the first byte after it; the same if it has no elements.
define internal void @extent(ptr %array, i64 %size, ptr %low, ptr %high) {
entry:
  %at.data = getelementptr i8, ptr %array, i64 $data
  %data = load i64, ptr %at.data
  %at.ndim = getelementptr i8, ptr %array, i64 $ndim
  %ndim32 = load i32, ptr %at.ndim
  %ndim = sext i32 %ndim32 to i64
  %at.lengths = getelementptr i8, ptr %array, i64 $dimensions
  %lengths = load ptr, ptr %at.lengths
  %at.strides = getelementptr i8, ptr %array, i64 $strides
  %strides = load ptr, ptr %at.strides
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %first = phi i64 [ %data, %entry ], [ %first.next, %body ]
  %last = phi i64 [ %data, %entry ], [ %last.next, %body ]
  %more = icmp slt i64 %k, %ndim
  br i1 %more, label %look, label %done
look:
  %at.length = getelementptr i64, ptr %lengths, i64 %k
  %length = load i64, ptr %at.length
  %none = icmp eq i64 %length, 0
  br i1 %none, label %empty, label %body
body:
  %at.stride = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %at.stride
  %steps = sub i64 %length, 1
  %reach = mul i64 %steps, %stride
  %down = icmp slt i64 %reach, 0
  %below = select i1 %down, i64 %reach, i64 0
  %above = select i1 %down, i64 0, i64 %reach
  %first.next = add i64 %first, %below
  %last.next = add i64 %last, %above
  %k.next = add i64 %k, 1
  br label %head
done:
  %end = add i64 %last, %size
  store i64 %first, ptr %low
  store i64 %end, ptr %high
  ret void
empty:
  store i64 0, ptr %low
  store i64 0, ptr %high
  ret void
}

define ptr @wengert_write_arguments(ptr %self, ptr %args, i64 %nargs, ptr %names) {
entry:
  %at.items = getelementptr i8, ptr %self, i64 $items
  %first = load ptr, ptr %at.items
  %at.table = getelementptr i8, ptr %first, i64 $data
  %table = load ptr, ptr %at.table
$words
  %low = alloca i64
  %high = alloca i64
  %low.other = alloca i64
  %high.other = alloca i64
  %plain = icmp eq ptr %names, null
  %fitting = icmp eq i64 %nargs, %arguments
  %usual = and i1 %plain, %fitting
  br i1 %usual, label %check.head, label %other

; Each written argument is a writable array, and shares no memory with another argument.
check.head:
  %w = phi i64 [ 0, %entry ], [ %w.next, %check.next ]
  %w.more = icmp slt i64 %w, %written
  br i1 %w.more, label %check.body, label %go
check.body:
  %at.place = getelementptr i64, ptr %places, i64 %w
  %place = load i64, ptr %at.place
  %at.array = getelementptr ptr, ptr %args, i64 %place
  %array = load ptr, ptr %at.array
  %at.type = getelementptr i8, ptr %array, i64 $type
  %type = load ptr, ptr %at.type
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %check.flags, label %other
check.flags:
  %at.flags = getelementptr i8, ptr %array, i64 $flags
  %flags = load i32, ptr %at.flags
  %set = and i32 %flags, $wanted_flags
  %is.writable = icmp eq i32 %set, $wanted_flags
  br i1 %is.writable, label %check.extent, label %other
check.extent:
  %at.size = getelementptr i64, ptr %sizes, i64 %place
  %size = load i64, ptr %at.size
  call void @extent(ptr %array, i64 %size, ptr %low, ptr %high)
  br label %overlap.head
overlap.head:
  %k = phi i64 [ 0, %check.extent ], [ %k.next, %overlap.next ]
  %k.more = icmp slt i64 %k, %nargs
  br i1 %k.more, label %overlap.body, label %check.next
overlap.body:
  %itself = icmp eq i64 %k, %place
  br i1 %itself, label %overlap.next, label %overlap.type
overlap.type:
  %at.other = getelementptr ptr, ptr %args, i64 %k
  %against = load ptr, ptr %at.other
  %at.other.type = getelementptr i8, ptr %against, i64 $type
  %other.type = load ptr, ptr %at.other.type
  %other.array = icmp eq ptr %other.type, %ndarray
  br i1 %other.array, label %overlap.extent, label %overlap.next
overlap.extent:
  %at.other.size = getelementptr i64, ptr %sizes, i64 %k
  %other.size = load i64, ptr %at.other.size
  call void @extent(ptr %against, i64 %other.size, ptr %low.other, ptr %high.other)
  %from = load i64, ptr %low
  %to = load i64, ptr %high
  %from.other = load i64, ptr %low.other
  %to.other = load i64, ptr %high.other
  %before = icmp ult i64 %from, %to.other
  %after = icmp ult i64 %from.other, %to
  %overlaps = and i1 %before, %after
  br i1 %overlaps, label %other, label %overlap.next
overlap.next:
  %k.next = add i64 %k, 1
  br label %overlap.head
check.next:
  %w.next = add i64 %w, 1
  br label %check.head

go:
  %made = call ptr %PyObject_Vectorcall(ptr %target, ptr %args, i64 %nargs, ptr null)
  %raised = icmp eq ptr %made, null
  br i1 %raised, label %failed, label %made.some
failed:
  ret ptr null
made.some:
  %is.missed = icmp eq ptr %made, %missed
  br i1 %is.missed, label %release, label %copy.head
release:
  call void %Py_DecRef(ptr %made)
  br label %other

copy.head:
  %c = phi i64 [ 0, %made.some ], [ %c.next, %copy.body ]
  %c.more = icmp slt i64 %c, %written
  br i1 %c.more, label %copy.body, label %finish
copy.body:
  %at.to = getelementptr i64, ptr %places, i64 %c
  %to.place = load i64, ptr %at.to
  %at.into = getelementptr ptr, ptr %args, i64 %to.place
  %into = load ptr, ptr %at.into
  %number = add i64 %results, %c
  %at.values = getelementptr i8, ptr %made, i64 $items
  %at.value = getelementptr ptr, ptr %at.values, i64 %number
  %value = load ptr, ptr %at.value
  %at.bytes = getelementptr i64, ptr %sizes, i64 %to.place
  %itemsize = load i64, ptr %at.bytes
  call void @extent(ptr %into, i64 %itemsize, ptr %low, ptr %high)
  %begin = load i64, ptr %low
  %end = load i64, ptr %high
  %bytes = sub i64 %end, %begin
  %at.value.data = getelementptr i8, ptr %value, i64 $data
  %value.data = load ptr, ptr %at.value.data
  %at.into.data = getelementptr i8, ptr %into, i64 $data
  %into.data = load ptr, ptr %at.into.data
  call void @llvm.memcpy.p0.p0.i64(ptr %into.data, ptr %value.data, i64 %bytes, i1 false)
  %c.next = add i64 %c, 1
  br label %copy.head

finish:
  %tuple = icmp ne i64 %is_tuple, 0
  br i1 %tuple, label %slice, label %no.tuple
slice:
  %kept = call ptr %PyTuple_GetSlice(ptr %made, i64 0, i64 %results)
  br label %end.made
no.tuple:
  %some = icmp ne i64 %results, 0
  %at.made = getelementptr i8, ptr %made, i64 $items
  %only = load ptr, ptr %at.made
  %single = select i1 %some, ptr %only, ptr %none
  call void %Py_IncRef(ptr %single)
  br label %end.made
end.made:
  %result = phi ptr [ %kept, %slice ], [ %single, %no.tuple ]
  call void %Py_DecRef(ptr %made)
  ret ptr %result
other:
  %otherwise = call ptr %PyObject_Vectorcall(ptr %miss, ptr %args, i64 %nargs, ptr %names)
  ret ptr %otherwise
}
