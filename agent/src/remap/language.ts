// The pages on the language, for its users. Words, operators, codes and functions come from their declarations. Each example shows its
// result and runs as a test.

import { diagnosticCodes } from './codes.ts'
import { functions } from './functions.ts'
import { keywords, reserved } from './lexer.ts'
import { levels } from './parser.ts'

export interface LanguagePage {
  /** Words that `explain` finds it by; the first is the name of its file. */
  readonly names: readonly string[]
  readonly title: string
  /** One sentence. */
  readonly summary: string
  readonly text: string
}

/** A program and, line by line, what it gives. The event is empty unless the program writes it. */
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
      ['language', 'remap-language'],
      'The remap language',
      'A program of the remap language changes one event; it is compiled once and cannot fail in a way that it does not handle.',
      'A program is a list of expressions, one after the other. Everything is an expression: assignments, `if`, blocks and calls have values. `.` is the event, `%` its metadata. Nothing survives from one event to the next.',
      example('.message = "GET /"\n.method = upcase("get")\ndel(.message)\n.', '{ "method": "GET" }'),
      'The result of a run is success (the event as changed), abort, or an error; after the latter two all changes are undone, and the options of the [remap](../transforms/remap.md) transform decide what becomes of the event.',
      [
        '- [Expressions](expressions.md): literals, `if`, blocks, templates',
        '- [Operators](operators.md): what they take, and how tight they bind',
        '- [Paths](paths.md): fields, items, metadata',
        '- [Assignment](assignment.md): writing to the event, to variables; `ok, err =`',
        '- [Kinds](kinds.md): the types, and how the compiler follows them',
        '- [Failures](fallibility.md): what can fail, and how a program handles it',
        '- [Closures](closures.md): functions that run a block for each item',
        '- [Metric events](metric-events.md): what a program sees of a metric',
        '- [Codes](codes.md): what the compiler says',
        '- [Functions by category](function-categories.md)',
      ].join('\n'),
      '`penstock-agent remap` runs programs, has a prompt to try them, and `--explain` prints the kinds that the compiler infers. `remap.tmLanguage.json` beside these pages is a grammar for editors.',
      'Limits: arrays are written at indexes from -65535 to 65535, decompressed data has at most 128 MiB, JSON and YAML are read to 128 levels, and a program is refused when it is nested too deep to be compiled.',
    ),
    page(
      ['expressions'],
      'Expressions',
      'The elements of programs: literals, names, blocks and conditions.',
      '## Literals',
      [
        '- Strings: `"text"`, with the escapes `\\n \\r \\t \\0 \\\\ \\" \\\' \\{ \\}`, `\\u{1F600}` and a backslash before the end of a line, which joins it with the next.',
        "- Raw strings: `s'C:\\dir'`; nothing is escaped, and a quote is written `\\'`.",
        "- Regular expressions: `r'^\\d+$'`, in the dialect of engines without look-around and back-references; they run in time in proportion to the text.",
        "- Timestamps: `t'2026-01-01T00:00:00Z'`, RFC 3339 with a zone.",
        '- Integers (`1`, `-5`, `1_000`; 64 bits), floats (`1.5`), `true`, `false`, `null`.',
        '- Arrays `[1, "a"]` and objects `{ "key": value }`. Keys are strings; objects are always in the order of their keys.',
      ].join('\n'),
      example('{ "b": 1, "a": [1.5, null] }', '{ "a": [1.5, null], "b": 1 }'),
      '## Templates',
      '`{{ name }}` inside a string is the value of a variable. It takes names of variables only, and is checked like `+`: a string or null is fine, anything else must be converted before.',
      example('name = "world"\n"Hello {{ name }}"', '"Hello world"'),
      '## Blocks and conditions',
      'A block has the value of its last expression. `if` asks for a boolean that cannot fail; without `else` it gives null.',
      example(
        '.status = 503\nclass = if .status == 503 { "unavailable" } else if .status == 200 { "ok" } else { "other" }\nclass',
        '"unavailable"',
      ),
      '`abort` ends the program and undoes what it did, `abort "why"` with a message. `return value` ends it and keeps what it did.',
      '## Lines, comments, names',
      'An expression ends with its line or with `;`. It goes on after a binary operator, after `=` and inside of brackets. `#` begins a comment.',
      `Names consist of ASCII letters, digits, \`_\` and, in paths, \`@\`. Keywords: ${list(keywords)}. Reserved, and so not for variables: ${list(reserved)}. All of these may be names of fields.`,
    ),
    page(
      ['operators'],
      'Operators',
      'Operands, results and precedence of operators.',
      'From the one that binds tightest; those of one line bind alike, and all associate to the left:',
      ['1. `!`', ...levels.toReversed().map((each, index) => `${index + 2}. ${list(each)}`)].join('\n'),
      'So `&&` and `||` are worked out from left to right, and `f() ?? 1 + 1` is `f() ?? (1 + 1)`.',
      [
        '- `+`: sums, joins strings. A null beside a string adds nothing. Integers wrap beyond 64 bits.',
        '- `-`, `*`: numbers. `"ab" * 3` repeats a string.',
        '- `/`: always a float, and fails for zero.',
        '- `<`, `<=`, `>`, `>=`: numbers, strings or timestamps among themselves. They cannot be chained.',
        '- `==`, `!=`: anything, and never fail. `1 == 1.0` is true; inside of arrays and objects types must agree, too.',
        '- `&&`: booleans; null counts as false. The right side runs only if the left one is true.',
        '- `||`: the left value unless it is null or false, then the right one; of any type.',
        '- `??`: the left value, or the right one if the left one fails.',
        '- `|`: two objects as one; the right one wins.',
        '- `!`: negates a boolean.',
      ].join('\n'),
      'There is no unary minus but in literals, and a minus directly before a digit belongs to the number: write `x - 1`. Operators are read as long as they go: write `x == -1`, `.a != 1`, with blanks.',
      example('[7 / 2, "a" + null, null || "x", "ab" * 2]', '[3.5, "a", "x", "abab"]'),
      example('{"a": 1, "b": 1} | {"b": 2}', '{ "a": 1, "b": 2 }'),
      example('to_int("x") ?? -1', '-1'),
    ),
    page(
      ['paths'],
      'Paths',
      'How fields and items of the event, its metadata and variables are named.',
      [
        '- `.` the event, `%` its metadata',
        '- `.a.b` a field below a field; `."a b".c` a name that needs quotes',
        '- `.a[0]` the first item, `.a[-1]` the last',
        '- `%a.b` metadata; `v.a` a field of a variable; `f(x).a` of what a function gives',
      ].join('\n'),
      'A field that does not exist reads as null, and reading never fails; `exists` distinguishes absent from null. A path must not contain blanks. Brackets accept only integers; `get`, `set` and `remove` accept computed paths.',
      example('.a = {"b": [1, 2, 3]}\n[.a.b[-1], .a.c, exists(.a.c)]', '[3, null, false]'),
      'Writing makes what is missing: a name makes an object, an index an array, filled with null. A negative index before the beginning makes the array grow at its front.',
      example('.list[2] = "c"\n.list[-4] = "z"\n.list', '["z", null, null, "c"]'),
      '`del(.a)` removes a field and gives what it was; with `compact: true` also what it leaves empty.',
      example('.a = {"b": {"c": 1}}\ngone = del(.a.b.c, compact: true)\n[gone, .]', '[1, {  }]'),
      'Metadata below `%vector` can be read only, and in conditions nothing can be written.',
    ),
    page(
      ['assignment'],
      'Assignment',
      'How values get into the event, its metadata and variables.',
      '`target = value` writes a copy and gives the value. Variables live in the block in which they were first assigned.',
      example('x = .a = 1\n.b = x\n.', '{ "a": 1, "b": 1 }'),
      '`. = value` replaces the event. An array makes an event of each of its items; what is no object stands under the key of the message.',
      '`target |= object` merges an object into one.',
      example('.o = {"a": 1}\n.o |= {"b": 2}\n.o', '{ "a": 1, "b": 2 }'),
      '`ok, err = value` takes what may fail: after success `err` is null; after a failure it is the message, and `ok` the default of its kind (`""`, `0`, `false`, `{}`, …; null if it may be of several).',
      example('n, err = to_int("x")\n[n, is_string(err)]', '[0, true]'),
      '`_` drops one of the two.',
    ),
    page(
      ['kinds', 'types'],
      'Kinds',
      'The types of values, and how the compiler follows them through a program.',
      [
        '- string: text, or bytes that need not be UTF-8',
        '- integer: 64 bits; float: 64 bits, never NaN',
        '- boolean, null',
        '- timestamp: an instant with nanoseconds',
        '- regex: a compiled pattern',
        '- array, object',
      ].join('\n'),
      'A *kind* is the set of types that a value can have. A field of an event is of any kind at first; an assignment makes it known, also what is in arrays and objects. Where two ways meet, as after `if`, the kind is the union.',
      'Comparisons never narrow a kind; this needs an assignment: `.x = string!(.x)`, or `x = string(.x) ?? ""`. `string`, `int`, `float`, `bool`, `timestamp`, `array` and `object` fail for another type and convert nothing; `to_string`, `to_int`, `to_float`, `to_bool` convert.',
      example('.a = "5"\nn = to_int!(.a)\ntype_def(n)', '{ "integer": true }'),
      'An argument whose kind cannot be right does not compile (E110); one that may be wrong makes the call fallible.',
      '`penstock-agent remap --explain PROGRAM` prints the kinds that the compiler infers.',
    ),
    page(
      ['fallibility', 'failures'],
      'Failures',
      'A program must handle every possible failure, or it does not compile.',
      'Calls of fallible functions, calls whose arguments may be of a wrong kind, and some operators can fail. Each is handled in one of three ways:',
      [
        '- `f!(x)`: a failure ends the program, and its changes are undone.',
        '- `f(x) ?? other`: a failure gives the other value.',
        '- `ok, err = f(x)`: the failure is a value.',
      ].join('\n'),
      example('a = parse_json("{") ?? {}\nb, err = parse_json("[1]")\n[a, b, err]', '[{  }, [1], null]'),
      'Arguments must not fail: handle what is inside before the call. `??` takes every failure of its left side, also that of a call with `!` in it.',
      'A program that ends by a failure has the message `function call error for "f" at (start:end): reason`. `assert!(condition, message)` fails with a message of its own; `abort` is no failure but a decision, and by default drops the event.',
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
      'Parameters hide variables of the same name; `_` ignores one. The block may change variables and the event; but the kinds that the compiler knows after the call are those before it.',
      '`abort` in a block ends the program. `return` ends one round, where the block goes over the fields of an object in `for_each` and `filter`; elsewhere it is an error.',
      'With `recursive: true`, `map_values` and `map_keys` also go into nested arrays and objects. A block of `map_values` that always gives another collection is stopped: after a million values, or a thousand levels, the program ends with an error.',
    ),
    page(
      ['lanes'],
      'Lanes',
      'Which programs let the lines of pods stay bytes, which takes a fraction of the CPU.',
      'Where nothing needs the fields of an event, the agent makes no object of it: the line stays bytes from the log file to the request. The destination gets the same events.',
      '`penstock-agent graph` shows the lane of each component, and why it is the object lane; `penstock lint` notes a program that alone is the reason; the metric `byte_lane_events_total` counts events. The decision begins at the sinks: lines stay bytes where all components that read a source, one after the other, can work on them.',
      '## Components that work on bytes',
      [
        '- [orchestrator_logs](../sources/orchestrator_logs.md) without `multiline`. Lines that the runtime has cut, and lines that are not UTF-8, become objects among the others.',
        '- [remap](../transforms/remap.md) with a program that parses the message as JSON or leaves it, and then sets, moves, removes or computes fields, as the section below says. A message that is not a JSON object becomes an object, and the program runs.',
        '- [filter](../transforms/filter.md) with a condition that names the fields it reads. It is asked once for lines whose values of those fields are the same.',
        '- [http](../sinks/http.md), [search_engine](../sinks/search_engine.md), [log_aggregator](../sinks/log_aggregator.md), [file](../sinks/file.md), [console](../sinks/console.md) and [message_broker](../sinks/message_broker.md) with codec `json`, and [blackhole](../sinks/blackhole.md). Labels, the name of an index or a file and the like may contain fields.',
        '- Buffers, in memory and on disk.',
      ].join('\n'),
      example(
        '# Stands for the line of a pod.\n.message = s\'{"level":"info"}\'\n. = merge(., object!(parse_json!(.message)))\ndel(.message)\n.level',
        '"info"',
      ),
      '## Programs that keep lines as bytes',
      [
        '- **Parse the message**, as its first statements: `parse_json!`, a default (`parse_json(.message) ?? {}`), or an error that is checked (`parsed, err = parse_json(.message)`); with `merge`, `|=` or `. =`, or into a field; by a variable or without.',
        '- **Set fields of the root to constants, move and remove them**: `.env = "prod"`, `.a = .b`, `.message = del(.msg)`. This costs nothing for each event.',
        '- **Compute fields, and end for some events**: `.level = upcase(string!(.level))`, `if .level == "debug" { abort }`, `if .status >= 500 { .alert = true } else { del(.trace) }`, `.pod = .orchestrator.pod_name`, `.a.b = 1`. Statements that depend on each other form a group. Each group runs once for all lines of a batch whose values of the fields it reads are the same. So a group that reads a level, a status or metadata of the pod costs little, and one that reads an id or the whole message costs nearly as much as objects.',
      ].join('\n'),
      'At most 12 fields of a program may be computed, and 32 changed.',
      '## Statements and options that need objects',
      [
        '| Needs objects | Instead |',
        '|---|---|',
        '| functions whose result does not depend on their arguments alone: `now()`, `uuid_v4()`, `get_secret`, `log` | `.timestamp` for `now()` |',
        '| the event as a whole: `length(.)`, `for_each(.)`, `. = {…}`, `merge` with something other than the message | the fields, by their names |',
        '| other statements before the message is parsed | the same statements after it |',
        '| a variable that holds the parsed message, once it is in the event: `. = merge(., parsed)` and later `parsed.level` | the field: `.level` |',
        '| metadata that change (`%a = 1`), `return`, `unnest` | |',
        '| in conditions of a `filter`: `now()`, and the event as a whole | a condition on fields |',
        '| `encoding.only_fields` and `encoding.except_fields` with fields below the root | `del` in a program; fields of the root |',
        '| one sink that needs objects beside others | a Pipeline of its own for that sink |',
      ].join('\n'),
      '## Pipelines that read the same pods',
      'With an operator, Pipelines that stand at the same position of a log file share the read and the search for the ends of lines; if they may read the same namespaces, they share the parsed JSON, too. Each keeps its own position, limits and metrics. A Pipeline that falls behind waits for nobody and holds up nobody: it reads by itself until it has caught up. The metric `shared_reads_total` counts the chunks that a Pipeline did not have to read.',
      '`remap.byte_lane: false` at the top level of a configuration makes objects of all lines, for comparison.',
    ),
    page(
      ['metric-events'],
      'Metric events',
      'Fields of a metric event that a program can read, and those that it may change.',
      [
        '- `.name`: can be read and written',
        '- `.namespace`, `.timestamp`, `.interval_ms`: can be read, written and deleted; absent if there is none',
        '- `.kind`: `"incremental"` or `"absolute"`',
        '- `.type`: the variant of the value, such as `"counter"`; can be read only',
        '- `.tags`: all tags; `.tags.name`: one of them',
      ].join('\n'),
      'The value itself is not visible. A write that a metric cannot take has no effect. The option `metric_tag_values` decides how tags look: `single` shows text, the last value of several; `full` shows arrays; `auto` shows what they are.',
    ),
    page(
      ['codes', 'error-codes'],
      'Codes',
      'Every code that the compiler gives, and what it means.',
      'E620, E801 and E900 are warnings, which do not keep a program from running; the others are errors.',
      Object.entries(diagnosticCodes)
        .map(([number, line]) => `- [E${number}](../errors/E${number}.md): ${line}`)
        .join('\n'),
      '`penstock-agent explain E103` prints the page of a code.',
    ),
    page(
      ['function-categories'],
      'Functions by category',
      'All functions of the language, by what they are for.',
      ...Object.entries(Object.groupBy(functions, ({ category }) => category))
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .flatMap(([category, each = []]) => [
          `## ${category}`,
          each
            .toSorted((left, right) => (left.name < right.name ? -1 : 1))
            .map(({ name, summary }) => `- [${name}](../functions/${name}.md): ${summary}`)
            .join('\n'),
        ]),
      'Functions that ask the network (`dns_lookup`, `reverse_dns`, `http_request`) need `remap.network: true` at the top level of the configuration. Their programs run in a worker of their own: only the events of that transform wait.',
    ),
  ]
}
