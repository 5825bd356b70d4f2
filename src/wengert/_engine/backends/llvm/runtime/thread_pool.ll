define internal {i64, i64} @take() {
entry:
  %first = load atomic i64, ptr $ticket seq_cst, align 8
  br label %try
try:
  %ticket = phi i64 [%first, %entry], [%seen, %change]
  %next = and i64 %ticket, $next
  %shifted = lshr i64 %ticket, $parts
  %parts = and i64 %shifted, $next
  %none = icmp uge i64 %next, %parts
  br i1 %none, label %empty, label %change
change:
  %after = add i64 %ticket, 1
  %pair = cmpxchg ptr $ticket, i64 %ticket, i64 %after seq_cst seq_cst, align 8
  %seen = extractvalue {i64, i1} %pair, 0
  %mine = extractvalue {i64, i1} %pair, 1
  br i1 %mine, label %got, label %try
got:
  %one = insertvalue {i64, i64} poison, i64 %next, 0
  %both = insertvalue {i64, i64} %one, i64 %parts, 1
  ret {i64, i64} %both
empty:
  ret {i64, i64} {i64 -1, i64 0}
}
