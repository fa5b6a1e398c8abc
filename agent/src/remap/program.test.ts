import { expect, test, vi } from 'vitest'
import { noMetadata } from '../event/log.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { isFailure } from './function.ts'
import { type CompileOptions, compileProgram, type Program } from './program.ts'
import { fromTagged, type Tagged, toTagged } from './tagged.ts'

function compiled(source: string, options: CompileOptions = {}): Program {
  const result = compileProgram(source, { keepResult: true, ...options })
  if (!result.ok) throw new Error(result.rendered)
  return result.program
}

/** Outcome of a program on an event, in tagged form. */
function outcome(source: string, event: Tagged = {}, options: CompileOptions = {}): unknown {
  const program = compiled(source, options)
  const fields = fromTagged(event) as ValueObject
  const result = program.run(fields, noMetadata, true)
  if (isFailure(result)) {
    expect(toTagged(fields)).toEqual(event)
    return result.outcome === 'abort' ? { abort: result.given } : { error: result.message }
  }
  return { ok: toTagged(result), event: toTagged(program.frame.root) }
}

test.each([
  // A failure undoes every change, wherever it was made.
  ['.m = 1\n.n = 1\nx = {}\nx.a || (.n = "s")\n.n + 1', { b: 2 }],
  ['.a = 1\nto_int!("x")', { b: 2 }],
  ['.o.p = 1\ndel(.b)\nabort', { o: { p: 0 }, b: 2 }],
  ['.l[3] = 1\n.c = to_int!(.b)', { l: [0], b: 'x' }],
  ['for_each([1, 2]) -> |i, _v| { .n = i\n if i == 1 { abort } }', { n: 9 }],
  ['if .a == 1 { .a = 2 }\n.b = upcase!(.b)', { a: 1, b: 1 }],
  ['. = {"x": 1}\n.y = 2\nto_int!("x")', { a: 1 }],
  ['.a, err = to_int("5")\n.b, err = to_int("x")\nif err != null { abort string!(err) }', { a: 1 }],
])('%s leaves the event unchanged', (source, event) => {
  expect(outcome(source, event)).not.toHaveProperty('ok')
})

test.each([
  ['filter([1]) -> |_i, _v| {\n return 0\n true }'],
  ['filter({"a": 1}) -> |_k, v| { return v }'],
  ['map_keys({"a": 1}) -> |k| { if k == "a" { return 1 }\n k }'],
])('%s: a closure returns what it must give', (source) => {
  const result = compileProgram(source)
  expect(result.ok ? [] : result.diagnostics.map(({ code }) => code)).toEqual([122])
})

test.each([
  // Values are immutable: a later change of one does not affect another.
  ['x = .\n.a = 2\n[x, .]', { a: 1 }, [{ a: 1 }, { a: 2 }]],
  ['.copy = .\n.a = 2\n.', { a: 1 }, { a: 2, copy: { a: 1 } }],
  ['x = .o\nx.k = 2\n.o.k = 3\n[x.k, .o.k]', { o: { k: 1 } }, [2, 3]],
  ['. = {"a": 1}\nx = .\n.a = 2\nx', {}, { a: 1 }],
  ['x = {"a": 1}\n. = x\n.a = 2\nx', {}, { a: 1 }],
  ['l = push([1], .)\n.a = 2\nl', { a: 1 }, [1, { a: 1 }]],
  // Operands are evaluated from left to right, and keep their values.
  ['[.a, del(.a), .a]', { a: 1 }, [1, 1, null]],
  ['x = 1\n[x, (x = 2), x]', {}, [1, 2, 2]],
  ['x = 1\nx + (x = 5) + x', {}, 11],
  ['x = {}\nx.a = x', {}, {}],
  ['x = {}\npush([], (x.a = x))', {}, [{}]],
  ['x = true\ny = x && (x = false)\n[x, y]', {}, [false, false]],
  ['x = 1\n[{ x }, (x = 2)]', {}, [1, 2]],
  // Calls with constants run at compile time, with the same tests and conversions.
  [
    'v, err = timestamp(encode_base64!(parse_json!("{}")))\nerr',
    {},
    'function call error for "timestamp" at (9:53): function call error for "encode_base64" at (19:52): expected string, got object',
  ],
  ['split_path(encode_zlib("")) == split_path(encode_zlib("") + "")', {}, true],
  ['floor(1.0, 2147483648)', {}, { $float: '0.0' }],
  ['.b.b = 1\n{ "b": .b.b, "a": del(.) }', {}, { a: { b: { b: 1 } }, b: null }],
  // The right side of a lazy operator may not run.
  ['x = 1\nfalse && (x = 2) == 2\nx', {}, 1],
  ['x = 1\n"a" || (x = 2)\nx', {}, 1],
  ['null || (y = 5)\ny + 1', {}, 6],
  // An expression that never has a value has every kind.
  ['type_def({ abort "s" })', {}, { never: true }],
  ['type_def({ return 1\n"s" })', {}, { bytes: true }],
  ['{ return 1 } * 2.5', {}, 1],
  ['{ return "a" } + "b"', {}, 'a'],
  ['true && (y = 5) == 5\ny + 1', {}, 6],
  // A missing value counts as true for the compiler, which so expects no number here.
  ['x = {}\nx.a || 5', {}, 5],
  ['x = split("a", ",")\nupcase(x[1] || 5) ?? "none"', {}, 'none'],
  ['x = split("a", ",")\ny, err = to_int(x[1] || to_string({}))\nerr != null', {}, true],
  // Names of prototype members are ordinary names.
  ['.constructor', {}, null],
  ['.constructor.name', {}, null],
  ['.toString = 1\n.toString', {}, 1],
  ['del(.valueOf)\nexists(.valueOf)', { valueOf: 1 }, false],
  ['x = {"__proto__": {"a": 1}}\nx.a', {}, null],
  ['set_secret("__proto__", "s")\nget_secret("__proto__")', {}, 's'],
  // The checker does not see the effects of a closure, but they happen.
  ['. = {"a": {"b": 1}}\nfor_each([1]) -> |_i, _v| { . = {} }\n.a.b', {}, null],
  // It does not see either which effects a failure prevented.
  ['x, err = ((.a.a = int!(.b)) + .c)\n[.a.a, err != null]', {}, [null, true]],
  ['v = {"a": {"b": 1}}\ndel(v.a)\nv.a.b', {}, null],
  // An unknown field stays unknown after a part of it was removed.
  ['del(.c[-4], compact: true)\ndel(.c, compact: true)\n.c[-2] = 1\n.c', { c: [1] }, [1, null]],
  ['del(.c.d)\ndel(.c)\n.c.e = 1\n.c', { c: { d: 1, f: 2 } }, { e: 1 }],
  // A removed field has the kind of all fields that are not known.
  ['.a = "gate"\ndel(.a)\nupcase(.a) ?? "no gate"', {}, 'no gate'],
  ['.a = {"b": 1, "c": 2}\ndel(.a.b)\nkeys(.a)', {}, ['c']],
  ['.a.b = "gate"\ndel(.a.b, compact: true)\n[upcase(.a) ?? 1, keys(.a) ?? 2, upcase(.a.b) ?? 3]', {}, [1, 2, 3]],
  ['. = {"a": 1}\nif now() < t\'2000-01-01T00:00:00Z\' { .b = 2 }\ndel(.b)\nabs(.b) ?? 3', {}, 3],
  ['%a = "gate"\ndel(%a)\nupcase(%a) ?? "no gate"', {}, 'no gate'],
  ['x = "s"\nfor_each([1]) -> |_i, _v| { x = 5 }\nx, err = upcase(x)\n[x, err != null]', {}, null],
])('%s', (source, event, expected) => {
  if (expected === null && source.startsWith('x = "s"')) {
    // The checker assumes that `x` is a string, so the failing call ends the program.
    expect(compileProgram(source).ok).toBe(false)
    return
  }
  expect(outcome(source, event as Tagged)).toMatchObject({ ok: expected })
})

test.each([
  ['9223372036854775807 + 1', { $int: '-9223372036854775808' }],
  ['9007199254740991 + 1', { $int: '9007199254740992' }],
  ['9007199254740993 - 2', 9007199254740991],
  ['3037000500 * 3037000500', { $int: '-9223372036709301616' }],
  ['1 + 1.0', { $float: '2.0' }],
  ['5 / 2', { $float: '2.5' }],
  ['4 / 2', { $float: '2.0' }],
  ['1 == 1.0', true],
  ['[1] == [1.0]', false],
  ['"\\u{ffff}" < "\\u{10000}"', true],
])('%s is %j', (source, expected) => {
  expect(outcome(source)).toMatchObject({ ok: expected })
})

test('invalid UTF-8 stays unchanged if no function reads it as text', () => {
  const event = { a: { $bytes: 'ff61' } }
  expect(outcome('.b, err = .a + "b"\n.a == .b', event)).toEqual({
    ok: false,
    event: { a: { $bytes: 'ff61' }, b: { $bytes: 'ff6162' } },
  })
  expect(outcome('upcase!(.a)', event)).toMatchObject({ ok: '\ufffdA' })
})

test.each([
  ['abort', 'any'],
  ['abort\n5', 'integer'],
  ['map_values({ "a": 1 }) -> |_v| { abort }', '{ a: any }'],
])('the kind of %s is %s', (source, expected) => {
  expect(compiled(source).kind.toString()).toBe(expected)
})

test.each<[string, number[]]>([
  ['if (x = 5; ; x > 3) { 1 }', []],
  ['if (x = 5;\n;\n x > 3;) { 1 }', []],
  ['if (\nx = true) { 1 }', [203]],
  ['for_each([1]) -> |_i,\n_v\n| { 1 }', []],
  ['for_each([1]) -> |\n_i, _v| { 1 }', [203, 203]],
  ['contains(\n"ab",\n"b",\n)', []],
  ['contains("ab"\n, "b")', [203]],
])('the errors of %j are %j', (source, codes) => {
  const result = compileProgram(source)
  expect(result.ok ? [] : result.diagnostics.map(({ code }) => code)).toEqual(codes)
})

test('metadata is read and written, except for read-only fields', () => {
  const program = compiled('%a.b = 1\n%a')
  const before = { value: { x: 1 }, secrets: {} }
  expect(program.run({}, before, true)).toEqual({ b: 1 })
  expect(program.metadataAfter(before)).toEqual({ value: { x: 1, a: { b: 1 } }, secrets: {} })
  expect(before.value).toEqual({ x: 1 })
  expect(compileProgram('%vector.x = 1')).toMatchObject({ ok: false, diagnostics: [{ code: 315 }] })
})

test('the facts of a program', () => {
  expect(compiled('.a = to_int!(.b)\nif .c == 1 { abort }\ndel(%d)').facts).toEqual({
    fallible: true,
    abortable: true,
    queries: ['.b', '.c', '%d'],
    assignments: ['.a'],
  })
})

test('a program that cannot fail after its writes changes the event in place', () => {
  const program = compiled('. = parse_json!(.message)\n.env = "prod"\ndel(.x)')
  const fields: ValueObject = { message: '{"x":1}' }
  program.run(fields, noMetadata, true)
  expect(fields).toEqual({ message: '{"x":1}' })
  expect(toTagged(program.frame.root)).toEqual({ env: 'prod' })

  const inPlace = compiled('.env = "prod"')
  inPlace.run(fields, noMetadata, true)
  expect(inPlace.frame.root).toBe(fields)
  const held: ValueObject = {}
  inPlace.run(held, noMetadata, false)
  expect(held).toEqual({})
})

test('compile errors show the place', () => {
  const result = compileProgram('.a = 1\nx = to_int(.b.c)\nif .c { "é" }')
  expect(result.ok).toBe(false)
  if (result.ok) return
  expect(result.rendered).toBe(`
error[E103]: unhandled fallible assignment
  ┌─ :2:5
  │
2 │ x = to_int(.b.c)
  │ --- ^^^^^^^^^^^^ this expression is fallible
  │ │
  │ or change this to an infallible assignment:
  │ x, err = to_int(.b.c)
  │
  = see documentation about error handling: \`!\` ends the program, \`??\` falls back, \`ok, err =\` gives the error
  = learn more about error code 103: A value that can fail is assigned to a single target.

error[E102]: non-boolean predicate
  ┌─ :3:4
  │
3 │ if .c { "é" }
  │    ^^
  │    │
  │    this predicate must resolve to a boolean
  │    instead it resolves to any
  │
  = learn more about error code 102: The predicate of an \`if\` is not a boolean.
`)
})

test.each([
  ['upcas("a")', 'did you mean "upcase"?'],
  ['status = 1\nstats', 'did you mean "status"?'],
])('%s proposes the closest name', (source, hint) => {
  const result = compileProgram(source)
  expect(result.ok ? '' : result.rendered).toContain(hint)
})

test.each([
  [
    'redact("a", filters: ["credit_card"])',
    'unknown filter "credit_card": expected a regex, "us_social_security_number" or { "type": "pattern", "patterns": [...] }',
  ],
  ['redact("a", filters: [{ "type": "pattern", "patterns": [1] }])', 'unknown pattern 1: expected a string or a regex'],
  [
    'redact("a", filters: [r\'a\'], redactor: "half")',
    'unknown redactor "half": expected "full", { "type": "text", "replacement": "..." }, "sha2" or "sha3"',
  ],
  [
    'redact("a", filters: [r\'a\'], redactor: { "type": "sha3", "variant": "SHA-1" })',
    'unknown variant "SHA-1": expected SHA3-224, SHA3-256, SHA3-384, SHA3-512',
  ],
  [
    'redact("a", filters: [r\'a\'], redactor: { "type": "sha2", "encoding": "hex" })',
    'unknown encoding "hex": expected base64 or base16',
  ],
])('%s names the expected values and the page of the function', (source, expected) => {
  const result = compileProgram(source)
  expect(result.ok ? '' : result.rendered).toContain(`error[E403]: ${expected}\n`)
  expect(result.ok ? '' : result.rendered).toContain('`penstock explain redact` describes it')
})

test('deep nesting and long programs compile', () => {
  const deep = `${'['.repeat(200)}1${']'.repeat(200)}`
  expect(compileProgram(deep).ok).toBe(true)
  const deeper = `${'['.repeat(100_000)}1${']'.repeat(100_000)}`
  expect(compileProgram(deeper)).toMatchObject({ ok: false, diagnostics: [{ code: 203 }] })
  const long = Array.from({ length: 2000 }, (_, index) => `.f${index} = ${index}`).join('\n')
  const value = outcome(long) as { event: Record<string, Value> }
  expect(value.event['f1999']).toBe(1999)
})

test('an impossible value fails the program, not the process', () => {
  const source = 'x = "0123456789abcdef" * 33000000\n.a = x + x\n.b = x + x + x'
  expect(outcome(source)).toEqual({ error: expect.stringContaining('could not continue') })
})

test('each `log` of a program writes one line per second, or at its own rate', () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const lines: string[] = []
    const source = `log("often")
      log({"n": .n}, level: "warn", rate_limit_secs: 60)
      log("each", rate_limit_secs: 0)`
    const program = compiled(source, { log: (level, text) => lines.push(`${level} ${text}`) })
    for (let second = 0; second < 61; second++) {
      program.run({ n: second }, noMetadata, true)
      program.run({ n: second }, noMetadata, true)
      vi.advanceTimersByTime(1000)
    }
    const count = (line: string) => lines.filter((one) => one.startsWith(line)).length
    expect(count('info often')).toBe(61)
    expect(lines.filter((line) => line.startsWith('warn'))).toEqual(['warn { "n": 0 }', 'warn { "n": 60 }'])
    expect(count('info each')).toBe(122)
  } finally {
    vi.useRealTimers()
  }
})

test('unnest keeps the known types of an item for its copy', () => {
  const source = '.q[1].k = "s"\n.c = unnest(.q)\nupcase(.c[1].q.k)'
  expect(outcome(source, { q: [{ a: 1 }, { k: 2, b: 3 }] })).toMatchObject({ ok: 'S' })
  // The values of other fields are unknown.
  expect(compileProgram('.q[1].k = "s"\n.c = unnest(.q)\nupcase(.c[0].q.k)').ok).toBe(false)
  expect(compileProgram('if .x == 1 { .q[1].k = "s" }\n.c = unnest!(.q)\nupcase(.c[1].q.k)').ok).toBe(false)
})
