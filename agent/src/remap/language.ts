// The language pages for users. Words, operators, codes and functions come from their declarations. Each example shows its result and
// runs as a test.

import { diagnosticCodes } from './codes.ts'
import { functions } from './functions.ts'
import { keywords, reserved } from './lexer.ts'
import { levels } from './parser.ts'

export interface LanguagePage {
  /** Search words for `explain`; the first is the file name. */
  readonly names: readonly string[]
  readonly title: string
  /** One sentence. */
  readonly summary: string
  readonly text: string
}

/** A program and its result, line by line. The event is empty unless the program sets it. */
export interface LanguageExample {
  readonly source: string
  readonly result: string
}

/** The examples of a page: blocks of code whose last line is `# => result`. */
export function examplesOf(page: LanguagePage): LanguageExample[] {
  return [...page.text.matchAll(/```coffee\n([\s\S]*?)\n# => (.*)\n```/g)].map(([, source = '', result = '']) => ({
    source,
    result,
  }))
}

function example(source: string, result: string): string {
  return `\`\`\`coffee\n${source}\n# => ${result}\n\`\`\``
}

const page = (names: readonly string[], title: string, summary: string, ...parts: readonly string[]): LanguagePage => ({
  names,
  title,
  summary,
  text: parts.join('\n\n'),
})

const code = (text: string): string => `\`${text}\``
const list = (words: Iterable<string>): string => [...words].map(code).join(', ')

export function languagePages(): LanguagePage[] {
  return [
    page(
      ['language', 'remap-language', 'vrl'],
      'The remap language',
      'A program of the remap language changes one event; it is compiled once and must handle all its possible failures.',
      'A program is a list of expressions that run in order. Everything is an expression: assignments, `if`, blocks and calls have values. `.` is the event, `%` its metadata. A program keeps no state between events.',
      example('.message = "GET /"\n.method = upcase("get")\ndel(.message)\n.', '{ "method": "GET" }'),
      'A run succeeds (and changes the event), aborts, or ends with an error. In the last two cases all changes are undone, and the options of the [remap](../transforms/remap.md) transform decide what happens to the event.',
      [
        '- [Expressions](expressions.md): literals, `if`, blocks, templates',
        '- [Operators](operators.md): operands and precedence',
        '- [Paths](paths.md): fields, items, metadata',
        '- [Assignment](assignment.md): writing to the event and to variables; `ok, err =`',
        '- [Kinds](kinds.md): the types, and how the compiler tracks them',
        '- [Failures](fallibility.md): which expressions can fail, and how a program handles failures',
        '- [Closures](closures.md): functions that run a block for each item',
        '- [Metric events](metric-events.md): how a program sees a metric',
        "- [Codes](codes.md): the compiler's diagnostics",
        '- [Functions by category](function-categories.md)',
      ].join('\n'),
      '`penstock-agent remap` runs programs, offers an interactive prompt, prints JSON for other programs with `--json`, and prints the inferred kinds with `--explain`. `remap.tmLanguage.json` in this folder is a grammar for editors.',
      'Limits: arrays are written at indexes from -65535 to 65535, decompressed data has at most 128 MiB, JSON and YAML are read to a depth of 128 levels, and a program nested too deeply does not compile.',
    ),
    page(
      ['expressions'],
      'Expressions',
      'The elements of programs: literals, names, blocks and conditions.',
      '## Literals',
      [
        '- Strings: `"text"`, with the escapes `\\n \\r \\t \\0 \\\\ \\" \\\' \\{ \\}`, `\\u{1F600}`; a backslash at the end of a line joins it with the next.',
        "- Raw strings: `s'C:\\dir'`, without escapes except `\\'` for a quote.",
        "- Regular expressions: `r'^\\d+$'`, in a dialect without look-around and back-references; matching takes time linear in the length of the text.",
        "- Timestamps: `t'2026-01-01T00:00:00Z'`, RFC 3339 with a zone.",
        '- Integers (`1`, `-5`, `1_000`; 64 bits), floats (`1.5`), `true`, `false`, `null`.',
        '- Arrays `[1, "a"]` and objects `{ "key": value }`. Keys are strings; objects are always sorted by key.',
      ].join('\n'),
      example('{ "b": 1, "a": [1.5, null] }', '{ "a": [1.5, null], "b": 1 }'),
      '## Templates',
      '`{{ name }}` inside a string inserts the value of a variable. Only variable names are allowed, and the same checks as for `+` apply: the value must be a string or null; convert other values first.',
      example('name = "world"\n"Hello {{ name }}"', '"Hello world"'),
      '## Blocks and conditions',
      'A block has the value of its last expression. The condition of `if` must be an infallible boolean; without `else` the value may be null.',
      example(
        '.status = 503\nclass = if .status == 503 { "unavailable" } else if .status == 200 { "ok" } else { "other" }\nclass',
        '"unavailable"',
      ),
      '`abort` ends the program and undoes its changes, `abort "why"` with a message. `return value` ends it and keeps its changes.',
      '## Lines, comments, names',
      'An expression ends with its line or with `;`. It continues on the next line after a binary operator, after `=` and inside brackets. `#` starts a comment.',
      `Names consist of ASCII letters, digits, \`_\` and, in paths, \`@\`. Keywords: ${list(keywords)}. Reserved, and so not for variables: ${list(reserved)}. All of these may be names of fields.`,
    ),
    page(
      ['operators'],
      'Operators',
      'Operands, results and precedence of operators.',
      'From highest to lowest precedence; operators on one line have equal precedence, and all are left-associative:',
      ['1. `!`', ...levels.toReversed().map((each, index) => `${index + 2}. ${list(each)}`)].join('\n'),
      'So `&&` and `||` are evaluated from left to right, and `f() ?? 1 + 1` means `f() ?? (1 + 1)`.',
      [
        '- `+`: adds numbers, joins strings. Adding null to a string changes nothing. Integers wrap at 64 bits.',
        '- `-`, `*`: numbers. `"ab" * 3` repeats a string.',
        '- `/`: the result is always a float; division by zero fails.',
        '- `<`, `<=`, `>`, `>=`: two numbers, two strings or two timestamps. They cannot be chained.',
        '- `==`, `!=`: any values, and never fail. `1 == 1.0` is true; inside arrays and objects, types must be equal too.',
        '- `&&`: booleans; null counts as false. The right side only runs if the left one is true.',
        '- `||`: the left value unless it is null or false, otherwise the right value; any types.',
        '- `??`: the left value, or the right value if the left side fails.',
        '- `|`: merges two objects; fields of the right one win.',
        '- `!`: negates a boolean.',
      ].join('\n'),
      'A unary minus exists only in literals, and a minus directly before a digit belongs to the number: write `x - 1`. The longest possible operator is read: write `x == -1` and `.a != 1` with blanks.',
      example('[7 / 2, "a" + null, null || "x", "ab" * 2]', '[3.5, "a", "x", "abab"]'),
      example('{"a": 1, "b": 1} | {"b": 2}', '{ "a": 1, "b": 2 }'),
      example('to_int("x") ?? -1', '-1'),
    ),
    page(
      ['paths'],
      'Paths',
      'How to refer to fields and items of the event, its metadata and variables.',
      [
        '- `.` the event, `%` its metadata',
        '- `.a.b` a field below a field; `."a b".c` a name that needs quotes',
        '- `.a[0]` the first item, `.a[-1]` the last',
        "- `%a.b` metadata; `v.a` a field of a variable; `f(x).a` a field of a function's result",
      ].join('\n'),
      'A missing field reads as null, and reading never fails; `exists` distinguishes missing fields from null. A path must not contain blanks. Brackets accept only integers; for computed paths use `get`, `set` and `remove`.',
      example('.a = {"b": [1, 2, 3]}\n[.a.b[-1], .a.c, exists(.a.c)]', '[3, null, false]'),
      'Writing creates missing parents: a name creates an object, an index an array, filled with null. A negative index before the beginning extends the array at its front.',
      example('.list[2] = "c"\n.list[-4] = "z"\n.list', '["z", null, null, "c"]'),
      '`del(.a)` removes a field and returns its value; with `compact: true` it also removes parents that become empty.',
      example('.a = {"b": {"c": 1}}\ngone = del(.a.b.c, compact: true)\n[gone, .]', '[1, {  }]'),
      'Metadata below `%vector` is read-only, and conditions cannot write at all.',
    ),
    page(
      ['assignment'],
      'Assignment',
      'How to write values to the event, its metadata and variables.',
      '`target = value` writes a copy and returns the value. A variable exists in the block in which it is first assigned.',
      example('x = .a = 1\n.b = x\n.', '{ "a": 1, "b": 1 }'),
      '`. = value` replaces the event. An array creates an event from each of its items; a value that is not an object is stored under the message key.',
      '`target |= object` merges an object into one.',
      example('.o = {"a": 1}\n.o |= {"b": 2}\n.o', '{ "a": 1, "b": 2 }'),
      '`ok, err = value` handles a fallible expression: after success `err` is null; after a failure it is the error message, and `ok` the default of its kind (`""`, `0`, `false`, `{}`, …; null if several kinds are possible).',
      example('n, err = to_int("x")\n[n, is_string(err)]', '[0, true]'),
      '`_` ignores one of the two.',
    ),
    page(
      ['kinds', 'types'],
      'Kinds',
      'The types of values, and how the compiler tracks them through a program.',
      [
        '- string: text, or bytes that may not be UTF-8',
        '- integer: 64 bits; float: 64 bits, never NaN',
        '- boolean, null',
        '- timestamp: an instant with nanoseconds',
        '- regex: a compiled pattern',
        '- array, object',
      ].join('\n'),
      'A *kind* is the set of types that a value can have. Initially, a field of an event may have any kind; an assignment makes its kind known, including the content of arrays and objects. Where two branches join, for example after `if`, the kind is the union.',
      'Comparisons never narrow a kind; use an assignment: `.x = string!(.x)`, or `x = string(.x) ?? ""`. `string`, `int`, `float`, `bool`, `timestamp`, `array` and `object` fail for other types and do not convert; `to_string`, `to_int`, `to_float`, `to_bool` convert.',
      example('.a = "5"\nn = to_int!(.a)\ntype_def(n)', '{ "integer": true }'),
      'An argument whose kind is always wrong does not compile (E110); one whose kind may be wrong makes the call fallible.',
      '`penstock-agent remap --explain PROGRAM` prints the kinds that the compiler infers.',
    ),
    page(
      ['fallibility', 'failures'],
      'Failures',
      'A program must handle every possible failure, or it does not compile.',
      'Calls of fallible functions, calls whose arguments may have a wrong kind, and some operators can fail. There are three ways to handle a failure:',
      [
        '- `f!(x)`: a failure ends the program, and its changes are undone.',
        '- `f(x) ?? other`: a failure gives the other value.',
        '- `ok, err = f(x)`: the failure is a value.',
      ].join('\n'),
      example('a = parse_json("{") ?? {}\nb, err = parse_json("[1]")\n[a, b, err]', '[{  }, [1], null]'),
      'Arguments must not fail: handle their failures before the call. `??` handles every failure of its left side, including that of a call with `!`.',
      'A program that ends with a failure has the message `function call error for "f" at (start:end): reason`. `assert!(condition, message)` fails with its own message; `abort` is not a failure but a deliberate end, which drops the event by default.',
    ),
    page(
      ['closures'],
      'Closures',
      'Functions that run a block of the program for each item.',
      `Functions with a closure: ${list(
        functions
          .filter((each) => each.closure !== undefined)
          .map((each) => each.name)
          .sort(),
      )}.`,
      example('filter({"a": 1, "b": 2}) -> |_key, value| { value > 1 }', '{ "b": 2 }'),
      example('sum = 0\nfor_each([1, 2, 3]) -> |_index, value| { sum = sum + value }\nsum', '6'),
      'Parameters shadow variables of the same name; `_` ignores one. The block may change variables and the event; but after the call the compiler assumes the kinds from before the call.',
      '`abort` in a block ends the program. In `for_each` and `filter` over the fields of an object, `return` ends one iteration; elsewhere it is an error.',
      'With `recursive: true`, `map_values` and `map_keys` also process nested arrays and objects. If the block of `map_values` keeps returning collections, the program ends with an error after a million values or a thousand levels.',
    ),
    page(
      ['lanes'],
      'Lanes',
      'Programs that keep the lines of pods as bytes, which takes a fraction of the CPU.',
      'If no component needs the fields of an event, the agent does not create an object for it: the line stays bytes from the log file to the request. The destination receives the same events.',
      '`penstock-agent graph` shows the components where lines stay bytes, and why events are objects in the others; `penstock lint` reports a program that is the only reason; the metric `byte_lane_events_total` counts events. The decision starts at the sinks: lines stay bytes if all components after a source support bytes.',
      '## Components that work on bytes',
      [
        '- [orchestrator_logs](../sources/orchestrator_logs.md) without `multiline`. Lines split by the runtime, and lines that are not UTF-8, become objects among the byte lines.',
        '- [remap](../transforms/remap.md) with a program that parses the message as JSON or leaves it unchanged, and then sets, moves, removes or computes fields, as described below. A message that is not a JSON object becomes an object, and the program runs.',
        '- [filter](../transforms/filter.md) with a condition that names the fields it reads. The condition runs once for all lines with the same values of those fields.',
        '- [http](../sinks/http.md), [search_engine](../sinks/search_engine.md), [log_aggregator](../sinks/log_aggregator.md), [file](../sinks/file.md), [console](../sinks/console.md) and [message_broker](../sinks/message_broker.md) with codec `json`, and [blackhole](../sinks/blackhole.md). Labels, index names, file names and similar options may use fields.',
        '- Buffers, in memory and on disk.',
      ].join('\n'),
      example(
        '# Represents the line of a pod.\n.message = s\'{"level":"info"}\'\n. = merge(., object!(parse_json!(.message)))\ndel(.message)\n.level',
        '"info"',
      ),
      '## Programs that keep lines as bytes',
      [
        '- **Parse the message** in the first statements: `parse_json!`, a default (`parse_json(.message) ?? {}`), or a checked error (`parsed, err = parse_json(.message)`); with `merge`, `|=` or `. =`, or into a field; with or without a variable.',
        '- **Set root fields to constants, move and remove them**: `.env = "prod"`, `.a = .b`, `.message = del(.msg)`. This costs nothing per event.',
        '- **Compute fields, and end for some events**: `.level = upcase(string!(.level))`, `if .level == "debug" { abort }`, `if .status >= 500 { .alert = true } else { del(.trace) }`, `.pod = .orchestrator.pod_name`, `.a.b = 1`. Dependent statements form a group. Each group runs once for all lines of a batch with the same values of the fields it reads. So a group that reads a level, a status or metadata of the pod costs little, and a group that reads an id or the whole message costs nearly as much as objects.',
      ].join('\n'),
      'A program may compute at most 12 fields, and change at most 32.',
      '## Statements and options that need objects',
      [
        '| Needs objects | Instead |',
        '|---|---|',
        '| functions whose result does not depend on their arguments alone: `now()`, `uuid_v4()`, `get_secret`, `log` | `.timestamp` for `now()` |',
        '| the event as a whole: `length(.)`, `for_each(.)`, `. = {…}`, `merge` with a value other than the message | the fields, by their names |',
        '| other statements before the message is parsed | the same statements after it |',
        '| a variable that holds the parsed message, once it is in the event: `. = merge(., parsed)` and later `parsed.level` | the field: `.level` |',
        '| changes of metadata (`%a = 1`), `return`, `unnest` | |',
        '| in conditions of a `filter`: `now()`, and the event as a whole | a condition on fields |',
        '| `encoding.only_fields` and `encoding.except_fields` with fields below the root | `del` in a program; fields of the root |',
        '| one of several sinks needs objects | a separate Pipeline for that sink |',
      ].join('\n'),
      '## Pipelines that read the same pods',
      'With an operator, Pipelines at the same position of a log file share the read and the search for line ends. If they may read the same namespaces, they also share the parsed JSON. Each Pipeline has its own position, limits and metrics. A slow Pipeline neither waits for others nor delays them: it reads the file itself until it has caught up. The metric `shared_reads_total` counts the chunks that a Pipeline did not have to read.',
      '`remap.byte_lane: false` at the top level of a configuration creates objects for all lines, for comparison.',
    ),
    page(
      ['metric-events'],
      'Metric events',
      'Fields of a metric event that a program can read, and those that it may change.',
      [
        '- `.name`: read and write',
        '- `.namespace`, `.timestamp`, `.interval_ms`: read, write and delete; absent if not set',
        '- `.kind`: `"incremental"` or `"absolute"`',
        '- `.type`: the type of the value, such as `"counter"`; read-only',
        '- `.tags`: all tags; `.tags.name`: one tag',
      ].join('\n'),
      'The value itself is not visible. Unsupported writes have no effect. The option `metric_tag_values` determines the form of tags: `single` gives text, the last of several values; `full` gives arrays; `auto` gives text or an array, depending on the number of values.',
    ),
    page(
      ['codes', 'error-codes'],
      'Codes',
      'All diagnostic codes of the compiler, and their meaning.',
      'E620, E801 and E900 are warnings, which do not prevent a program from running; the others are errors.',
      Object.entries(diagnosticCodes)
        .map(([number, line]) => `- [E${number}](../errors/E${number}.md): ${line}`)
        .join('\n'),
      '`penstock-agent explain E103` prints the page of a code.',
    ),
    page(
      ['function-categories'],
      'Functions by category',
      'All functions of the language by category.',
      ...Object.entries(Object.groupBy(functions, ({ category }) => category))
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .flatMap(([category, each = []]) => [
          `## ${category}`,
          each
            .toSorted((left, right) => (left.name < right.name ? -1 : 1))
            .map(({ name, summary }) => `- [${name}](../functions/${name}.md): ${summary}`)
            .join('\n'),
        ]),
      'Functions that use the network (`dns_lookup`, `reverse_dns`, `http_request`) need `remap.network: true` at the top level of the configuration. Programs that use them run in a separate worker, so only the events of that transform wait.',
    ),
  ]
}
