define ptr @wengert_dispatch(ptr %self, ptr %args, i64 %nargs, ptr %names) {
entry:
  %at.items = getelementptr i8, ptr %self, i64 $items
  %first = load ptr, ptr %at.items
  %at.data = getelementptr i8, ptr %first, i64 $data
  %table = load ptr, ptr %at.data
  %at.count = getelementptr i64, ptr %table, i64 1
  %count = load i64, ptr %at.count
  %at.routes = getelementptr i64, ptr %table, i64 2
  %routes = load ptr, ptr %at.routes
  %at.call = getelementptr i64, ptr %table, i64 3
  %vectorcall = load ptr, ptr %at.call
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %begin, label %named
named:
  %at.named = getelementptr i8, ptr %names, i64 16
  %number = load i64, ptr %at.named
  br label %begin
begin:
  %given = phi i64 [ 0, %entry ], [ %number, %named ]
  %total = add i64 %nargs, %given
  br label %routing
routing:
  %n = phi i64 [ 0, %begin ], [ %n.next, %other ]
  %route = phi ptr [ %routes, %begin ], [ %route.next, %other ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %look, label %miss
other:
  %n.next = add i64 %n, 1
  %at.size = getelementptr i64, ptr %route, i64 3
  %size = load i64, ptr %at.size
  %route.next = getelementptr i64, ptr %route, i64 %size
  br label %routing
look:
  %at.positional = getelementptr i64, ptr %route, i64 1
  %positional = load i64, ptr %at.positional
  %same.positional = icmp eq i64 %positional, %nargs
  %at.words = getelementptr i64, ptr %route, i64 2
  %words = load i64, ptr %at.words
  %same.words = icmp eq i64 %words, %given
  %same.number = and i1 %same.positional, %same.words
  br i1 %same.number, label %words.head, label %other
words.head:
  %w = phi i64 [ 0, %look ], [ %w.next, %words.next ]
  %w.more = icmp slt i64 %w, %given
  br i1 %w.more, label %words.body, label %kinds.begin
words.body:
  %w.offset = add i64 %w, $head
  %at.word = getelementptr ptr, ptr %route, i64 %w.offset
  %word = load ptr, ptr %at.word
  %at.tuple = getelementptr i8, ptr %names, i64 $items
  %at.name = getelementptr ptr, ptr %at.tuple, i64 %w
  %name = load ptr, ptr %at.name
  %same.word = icmp eq ptr %word, %name
  br i1 %same.word, label %words.next, label %other
words.next:
  %w.next = add i64 %w, 1
  br label %words.head
kinds.begin:
  %k.offset = add i64 %given, $head
  %kinds = getelementptr i64, ptr %route, i64 %k.offset
  br label %kinds.head
kinds.head:
  %k = phi i64 [ 0, %kinds.begin ], [ %k.next, %kinds.next ]
  %k.more = icmp slt i64 %k, %total
  br i1 %k.more, label %kinds.body, label %found
kinds.body:
  %k.place = mul i64 %k, 4
  %kind = getelementptr i64, ptr %kinds, i64 %k.place
  %class = load ptr, ptr %kind
  %at.argument = getelementptr ptr, ptr %args, i64 %k
  %argument = load ptr, ptr %at.argument
  %at.type = getelementptr i8, ptr %argument, i64 $type
  %type = load ptr, ptr %at.type
  %same.type = icmp eq ptr %type, %class
  br i1 %same.type, label %typed, label %other
typed:
  %at.dtype = getelementptr i64, ptr %kind, i64 1
  %dtype = load i64, ptr %at.dtype
  %is.array = icmp sge i64 %dtype, 0
  br i1 %is.array, label %array, label %kinds.next
array:
  %at.descr = getelementptr i8, ptr %argument, i64 $descr
  %descr = load ptr, ptr %at.descr
  %at.num = getelementptr i8, ptr %descr, i64 $number
  %num32 = load i32, ptr %at.num
  %num = sext i32 %num32 to i64
  %same.dtype = icmp eq i64 %num, %dtype
  %at.axes = getelementptr i8, ptr %argument, i64 $ndim
  %axes32 = load i32, ptr %at.axes
  %axes = sext i32 %axes32 to i64
  %at.wanted = getelementptr i64, ptr %kind, i64 2
  %wanted = load i64, ptr %at.wanted
  %same.axes = icmp eq i64 %axes, %wanted
  %at.flags = getelementptr i8, ptr %argument, i64 $flags
  %flags32 = load i32, ptr %at.flags
  %flags = sext i32 %flags32 to i64
  %layout = and i64 %flags, $layout
  %at.layout = getelementptr i64, ptr %kind, i64 3
  %expected = load i64, ptr %at.layout
  %same.layout = icmp eq i64 %layout, %expected
  %same.both = and i1 %same.dtype, %same.axes
  %same.all = and i1 %same.both, %same.layout
  br i1 %same.all, label %kinds.next, label %other
kinds.next:
  %k.next = add i64 %k, 1
  br label %kinds.head
found:
  %target = load ptr, ptr %route
  br i1 %plain, label %straight, label %ordered
straight:
  %result = tail call ptr %vectorcall(ptr %target, ptr %args, i64 %nargs, ptr null)
  ret ptr %result
ordered:
  %all = alloca ptr, i64 %total
  %o.place = mul i64 %total, 4
  %orders = getelementptr i64, ptr %kinds, i64 %o.place
  br label %order.head
order.head:
  %o = phi i64 [ 0, %ordered ], [ %o.next, %order.body ]
  %o.more = icmp slt i64 %o, %total
  br i1 %o.more, label %order.body, label %go
order.body:
  %at.order = getelementptr i64, ptr %orders, i64 %o
  %from = load i64, ptr %at.order
  %at.from = getelementptr ptr, ptr %args, i64 %from
  %moved = load ptr, ptr %at.from
  %at.to = getelementptr ptr, ptr %all, i64 %o
  store ptr %moved, ptr %at.to
  %o.next = add i64 %o, 1
  br label %order.head
go:
  %answer = call ptr %vectorcall(ptr %target, ptr %all, i64 %total, ptr null)
  ret ptr %answer
miss:
  %otherwise = load ptr, ptr %table
  %missed = call ptr %vectorcall(ptr %otherwise, ptr %args, i64 %nargs, ptr %names)
  ret ptr %missed
}
