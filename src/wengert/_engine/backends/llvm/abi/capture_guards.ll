declare i32 @memcmp(ptr, ptr, i64)

; 1 if all records hold, and then the arrays that are fed, each with a reference of its own.
define internal i64 @hold(ptr %table, ptr %out) {
$hold_words
  %fed = alloca i64
  %number = alloca i64
  store i64 0, ptr %fed
  store i64 0, ptr %number
  br label %head
head:
  %n = load i64, ptr %number
  %more = icmp slt i64 %n, %count
  br i1 %more, label %body, label %yes
body:
  %place = mul i64 %n, $record_words
  %record = getelementptr i64, ptr %records, i64 %place
  %next = add i64 %n, 1
  store i64 %next, ptr %number
$fields
  switch i64 %load, label %no [
    i64 0, label %of.holder
    i64 1, label %of.word
    i64 2, label %of.item
    i64 3, label %of.index
    i64 4, label %of.dict
    i64 5, label %of.call
    i64 6, label %of.address
    i64 7, label %of.version
    i64 8, label %of.seen
  ]
of.holder:
  br label %found
of.word:
  %at.word = getelementptr i8, ptr %holder, i64 %key
  %word = load ptr, ptr %at.word
  br label %found
of.version:
  %at.version = getelementptr i8, ptr %holder, i64 $version
  %version = load ptr, ptr %at.version
  %is.version = icmp eq ptr %version, %expected
  %skipped = select i1 %is.version, i64 %key, i64 0
  %following = add i64 %next, %skipped
  store i64 %following, ptr %number
  br label %head
of.seen:
  %at.seen = getelementptr i8, ptr %holder, i64 $version
  %seen = load i64, ptr %at.seen
  %back = mul i64 %key, -$record_bytes
  %before = getelementptr i8, ptr %at.expected, i64 %back
  store i64 %seen, ptr %before
  br label %head
of.address:
  %address = getelementptr i8, ptr %holder, i64 %key
  br label %found
of.item:
  %name = inttoptr i64 %key to ptr
  %item = call ptr %PyDict_GetItemWithError(ptr %holder, ptr %name)
  %there = icmp ne ptr %item, null
  br i1 %there, label %found, label %absent
absent:
  %error = call ptr %PyErr_Occurred()
  %quiet = icmp eq ptr %error, null
  br i1 %quiet, label %found, label %failed
of.index:
  %at.length = getelementptr i8, ptr %holder, i64 $length
  %length = load i64, ptr %at.length
  %within = icmp slt i64 %key, %length
  br i1 %within, label %of.element, label %no
of.element:
  %at.elements = getelementptr i8, ptr %holder, i64 $elements
  %elements = load ptr, ptr %at.elements
  %at.element = getelementptr ptr, ptr %elements, i64 %key
  %element = load ptr, ptr %at.element
  br label %found
of.dict:
  %dict = call ptr %PyObject_GenericGetDict(ptr %holder, ptr null)
  %has.dict = icmp ne ptr %dict, null
  br i1 %has.dict, label %dict.there, label %failed
dict.there:
  call void %Py_DecRef(ptr %dict)
  br label %found
of.call:
  %answer = call ptr %PyObject_CallNoArgs(ptr %holder)
  %answered = icmp ne ptr %answer, null
  br i1 %answered, label %answer.there, label %failed
answer.there:
  call void %Py_DecRef(ptr %answer)
  br label %found
found:
  %value = phi ptr [ %holder, %of.holder ], [ %word, %of.word ], [ %item, %of.item ],
    [ null, %absent ], [ %element, %of.element ], [ %dict, %dict.there ],
    [ %answer, %answer.there ], [ %address, %of.address ]
  switch i64 %act, label %no [
    i64 0, label %to.same
    i64 1, label %to.feed
    i64 2, label %to.alias
    i64 3, label %to.bytes
    i64 4, label %to.number
  ]
to.same:
  %is.same = icmp eq ptr %value, %expected
  br i1 %is.same, label %head, label %no
to.feed:
  %given = icmp ne ptr %value, null
  br i1 %given, label %to.feed.type, label %no
to.feed.type:
  %at.type = getelementptr i8, ptr %value, i64 $type
  %type = load ptr, ptr %at.type
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %to.feed.array, label %no
to.number:
  %counts = icmp ne ptr %value, null
  br i1 %counts, label %to.number.type, label %no
to.number.type:
  %at.class = getelementptr i8, ptr %value, i64 $type
  %class = load ptr, ptr %at.class
  %is.number = icmp eq ptr %class, %expected
  br i1 %is.number, label %to.feed.array, label %no
to.feed.array:
  call void %Py_IncRef(ptr %value)
  %k = load i64, ptr %fed
  %at.out = getelementptr ptr, ptr %out, i64 %k
  store ptr %value, ptr %at.out
  %k.next = add i64 %k, 1
  store i64 %k.next, ptr %fed
  br label %head
to.alias:
  %which = ptrtoint ptr %expected to i64
  %at.known = getelementptr ptr, ptr %out, i64 %which
  %known = load ptr, ptr %at.known
  %is.alias = icmp eq ptr %value, %known
  br i1 %is.alias, label %head, label %no
to.bytes:
  %difference = call i32 @memcmp(ptr %value, ptr %expected, i64 %extra)
  %is.equal = icmp eq i32 %difference, 0
  br i1 %is.equal, label %head, label %no
yes:
  ret i64 1
failed:
  call void %PyErr_Clear()
  br label %no
no:
  %left = load i64, ptr %fed
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %drop, label %end
drop:
  %last = sub i64 %left, 1
  store i64 %last, ptr %fed
  %at.last = getelementptr ptr, ptr %out, i64 %last
  %dropped = load ptr, ptr %at.last
  call void %Py_DecRef(ptr %dropped)
  br label %no
end:
  ret i64 0
}

; A guarded entry.
define ptr @wengert_guarded_enter(ptr %self, ptr %args, i64 %nargs, ptr %names) {
  %at.items = getelementptr i8, ptr %self, i64 $items
  %first = load ptr, ptr %at.items
  %at.data = getelementptr i8, ptr %first, i64 $data
  %table = load ptr, ptr %at.data
$enter_words
  %plain = icmp eq ptr %names, null
  %fitting = icmp eq i64 %nargs, %arguments
  %usual = and i1 %plain, %fitting
  br i1 %usual, label %look, label %other
look:
  %total = add i64 %nargs, %feeds
  %all = alloca ptr, i64 %total
  %out = getelementptr ptr, ptr %all, i64 %position
  %holds = call i64 @hold(ptr %table, ptr %out)
  %ready = icmp eq i64 %holds, 1
  br i1 %ready, label %go, label %other
go:
  %before = mul i64 %position, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %all, ptr %args, i64 %before, i1 false)
  %rest = sub i64 %nargs, %position
  %behind = mul i64 %rest, 8
  %end = add i64 %position, %feeds
  %to = getelementptr ptr, ptr %all, i64 %end
  %from = getelementptr ptr, ptr %args, i64 %position
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %behind, i1 false)
  %result = call ptr %PyObject_Vectorcall(ptr %target, ptr %all, i64 %total, ptr null)
  br label %head
head:
  %n = phi i64 [ 0, %go ], [ %next, %release ]
  %more = icmp slt i64 %n, %feeds
  br i1 %more, label %release, label %done
release:
  %at.fed = getelementptr ptr, ptr %out, i64 %n
  %fed = load ptr, ptr %at.fed
  call void %Py_DecRef(ptr %fed)
  %next = add i64 %n, 1
  br label %head
done:
  ret ptr %result
other:
  %missed = call ptr %PyObject_Vectorcall(ptr %miss, ptr %args, i64 %nargs, ptr %names)
  ret ptr %missed
}

; The arrays that are fed, as a tuple, or None.
define ptr @wengert_guarded_check(ptr %self, ptr %args, i64 %nargs, ptr %names) {
  %at.items = getelementptr i8, ptr %self, i64 $items
  %first = load ptr, ptr %at.items
  %at.data = getelementptr i8, ptr %first, i64 $data
  %table = load ptr, ptr %at.data
$check_words
  %tuple = call ptr %PyTuple_New(i64 %feeds)
  %made = icmp ne ptr %tuple, null
  br i1 %made, label %look, label %failed
look:
  %all = alloca ptr, i64 %feeds
  %holds = call i64 @hold(ptr %table, ptr %all)
  %ready = icmp eq i64 %holds, 1
  br i1 %ready, label %go, label %not
go:
  %to = getelementptr i8, ptr %tuple, i64 $items
  %bytes = mul i64 %feeds, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %all, i64 %bytes, i1 false)
  ret ptr %tuple
not:
  call void %Py_DecRef(ptr %tuple)
  call void %Py_IncRef(ptr %none)
  ret ptr %none
failed:
  ret ptr null
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
