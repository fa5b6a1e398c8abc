// For each diagnostic code, a program that produces it, and a fix. Tests run both.

export interface CodeExample {
  readonly wrong: string
  readonly right: string
}

export const codeExamples: Readonly<Record<number, CodeExample>> = {
  100: { wrong: '.a + 1', right: '(int(.a) ?? 0) + 1' },
  101: { wrong: 'match("a", r\'(a\')', right: 'match("a", r\'(a)\')' },
  102: { wrong: 'if .enabled { .a = 1 }', right: 'if .enabled == true { .a = 1 }' },
  103: { wrong: '.n = to_int(.n)', right: '.n = to_int(.n) ?? 0' },
  104: { wrong: '.a, .err = upcase("a")', right: '.a = upcase("a")' },
  105: { wrong: '.a = upcaze("a")', right: '.a = upcase("a")' },
  106: { wrong: '.a = upcase("a", "b")', right: '.a = upcase("a")' },
  107: { wrong: '.a = split("a,b")', right: '.a = split("a,b", ",")' },
  108: { wrong: '.a = upcase(text: "a")', right: '.a = upcase(value: "a")' },
  109: { wrong: '.a = upcase("a") -> |v| { v }', right: '.a = upcase("a")' },
  110: { wrong: '.a = upcase(5)', right: '.a = upcase(to_string(5))' },
  111: { wrong: '.a = filter([1, 2])', right: '.a = filter([1, 2]) -> |_index, value| { value > 1 }' },
  113: { wrong: 'abort 5', right: 'abort "five"' },
  120: {
    wrong: '.a = map_values({"a": 1}) -> |key, value| { [key, value] }',
    right: '.a = map_values({"a": 1}) -> |value| { [value] }',
  },
  121: {
    wrong: 'for_each(.list) -> |_index, value| { .last = value }',
    right: 'for_each(array(.list) ?? []) -> |_index, value| { .last = value }',
  },
  122: { wrong: '.a = filter([1]) -> |_i, v| { v }', right: '.a = filter([1]) -> |_i, v| { v > 0 }' },
  203: { wrong: '.a = = 1', right: '.a = 1' },
  204: { wrong: '.a = [1, 2', right: '.a = [1, 2]' },
  205: { wrong: 'while = 1', right: 'during = 1\n.a = during' },
  206: { wrong: '.a = 9223372036854775808', right: '.a = 9223372036854775807' },
  207: { wrong: '.a = "one', right: '.a = "one"' },
  208: { wrong: ".a = s'one", right: ".a = s'one'" },
  209: { wrong: '.a = "C:\\dir"', right: '.a = "C:\\\\dir"' },
  211: { wrong: '.a = "\\u{d800}"', right: '.a = "\\u{e9}"' },
  315: { wrong: '%vector.a = 1', right: '%mine.a = 1' },
  601: { wrong: ".a = t'2026-01-01'", right: ".a = t'2026-01-01T00:00:00Z'" },
  610: { wrong: '.a = to_regex!("(")\ndel(1)', right: '.a = to_regex!("a")\ndel(.b)' },
  620: { wrong: '.a = upcase!("a")', right: '.a = upcase("a")' },
  630: { wrong: '.a = upcase(to_string(.b))', right: '.a = upcase(to_string(.b) ?? "")' },
  631: { wrong: 'abort to_string(.a)', right: 'abort to_string(.a) ?? "unknown"' },
  640: { wrong: '_ = 5', right: '.a = 5' },
  641: { wrong: '{ "a": 1 }.b = 2', right: '.o = { "a": 1 }\n.o.b = 2' },
  642: { wrong: '.a = "text"\n.a.b = 1', right: '.a = {}\n.a.b = 1' },
  650: { wrong: '.a = 1 < 2 < 3', right: '.a = 1 < 2 && 2 < 3' },
  651: { wrong: '.a = upcase("a") ?? "b"', right: '.a = upcase("a")' },
  652: { wrong: '.a = {"a": 1} | .b', right: '.a = {"a": 1} | (object(.b) ?? {})' },
  660: { wrong: '.a = !.b', right: '.a = .b != true' },
  701: { wrong: '.a = missing', right: 'present = 1\n.a = present' },
  900: { wrong: '"text"\n.a = 1', right: '.b = "text"\n.a = 1' },
}
