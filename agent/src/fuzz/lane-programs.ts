// Random chains of programs and conditions. Most are of the kinds that keep lines as bytes, and some are not.

import type { Random } from '../testing/random.ts'

/** A remap transform with its options, or a filter. */
export type LaneStep =
  | {
      readonly type: 'remap'
      readonly options: { readonly source: string } & Readonly<Record<string, string | boolean>>
    }
  | { readonly type: 'filter'; readonly options: { readonly condition: string } }

const fields = [
  ...['a', 'b', 'n', 'f', 'env', 'level', 'v', 'w', 's', 'o', 'z', 'm'],
  ...['message', 'stream', 'timestamp', 'file', 'orchestrator', 'source_type', '"a b"', 'Zone', '_x'],
  ...['"ü"', '"10"', 'constructor', '"x.y"', 'fresh_1', 'k50'],
]
const constants = [
  '1',
  '-7',
  '2.0',
  '1.5',
  '"text"',
  '"ü\\n"',
  'true',
  'null',
  '{}',
  '{"z": [1, {}], "a": null}',
  '[]',
  '"info"',
  "t'2026-01-01T00:00:00.5Z'",
  `{"at": [t'1969-12-31T23:59:59.25Z', 1]}`,
]
const parsings = [
  '. = parse_json!(.message)',
  '. = merge(., object!(parse_json!(.message)))',
  '. = merge(., object(parse_json(.message) ?? {}) ?? {})',
  '. |= object(parse_json(.message) ?? {}) ?? {}',
  'p, err = parse_json(.message)\nif err == null && is_object(p) { . = merge(., object!(p)) } else { .raw = true }',
  '., e = parse_json(.message)\nif e != null { abort "no JSON" }',
  '.message = parse_json!(.message)',
  '.o = parse_json(.message) ?? .message',
]

/** Steps in the order of processing. */
export function randomChain(random: Random): readonly LaneStep[] {
  const steps: LaneStep[] = []
  const count = 1 + random.below(3)
  for (let index = 0; index < count; index++) {
    if (random.chance(0.15)) steps.push({ type: 'filter', options: { condition: condition(random) } })
    else steps.push({ type: 'remap', options: { source: program(random, index === 0), ...ends(random) } })
  }
  return steps
}

/** The output for events for which a program fails or aborts. */
function ends(random: Random): Record<string, boolean> {
  return {
    drop_on_error: random.chance(0.6),
    drop_on_abort: random.chance(0.7),
    reroute_dropped: random.chance(0.2),
  }
}

function program(random: Random, isFirst: boolean): string {
  const statements: string[] = []
  if (isFirst ? random.chance(0.8) : random.chance(0.1)) statements.push(random.pick(parsings))
  const count = random.below(6)
  for (let index = 0; index < count; index++) statements.push(statement(random, 2))
  if (random.chance(0.2)) statements.push('.')
  return statements.length === 0 ? '.a = 1' : statements.join('\n')
}

const field = (random: Random) => `.${random.pick(fields)}`

function statement(random: Random, depth: number): string {
  const to = field(random)
  const from = field(random)
  switch (random.below(depth > 0 ? 15 : 9)) {
    case 0:
      return `${to} = ${random.pick(constants)}`
    case 1:
      return `del(${to}${random.pick(['', '', '', '.a', '.pod_labels'])})`
    case 2:
      return `${to} = ${from}`
    case 3:
      return `${to} = del(${from})`
    case 4:
      return `x = del(${from})\n${to} = x`
    case 5:
      return `${to}.${random.pick(['a', 'k', 'pod_name'])} = ${random.chance(0.5) ? from : random.pick(constants)}`
    case 6:
      return `${to}, ${random.pick(['.err', 'e', '_'])} = ${fallible(random)}`
    case 7:
    case 8:
      return `${to} = ${value(random)}`
    case 9:
      return `if ${condition(random)} { abort${random.pick(['', ' "enough"'])} }`
    case 10:
      return wholeOrPart(random, to, from)
    case 11:
      return random.pick([
        `%note = ${from}`,
        `${to} = %note`,
        `${to} = %none`,
        `del(%note)`,
        `${from}, e = ${fallible(random)}\n${to} = e`,
      ])
    case 12:
      // Many fields, more than the kernel has columns for.
      return Array.from(
        { length: 1 + random.below(16) },
        (_, index) => `.c${index} = upcase(string(${field(random)}) ?? "c${index}")`,
      ).join('\n')
    case 13:
      return `${to} = if ${condition(random)} { ${value(random)} } else { ${value(random)} }`
    default: {
      const inner = `if ${condition(random)} { ${statement(random, depth - 1)}\n${statement(random, 0)} }`
      return random.chance(0.5) ? inner : `${inner} else { ${statement(random, depth - 1)} }`
    }
  }
}

/** Statements about lists, nested objects and the event as a whole. */
function wholeOrPart(random: Random, to: string, from: string): string {
  return random.pick([
    `. = merge(., {"b": 1, "more": ${from}})`,
    `. = {"a": ${from}, "message": .message}`,
    `. |= {"zz": 1}`,
    `${to} |= {"k": ${from}}`,
    `${to}[${random.pick(['0', '-1', '2'])}] = ${from}`,
    `${to} = ${from}[0]`,
    `${to} = push(array(${from}) ?? [], 1)`,
    `for_each(object(${from}) ?? {}) -> |k, v| { ${to} = k }`,
    `${to} = map_values(object(${from}) ?? {}) -> |v| { [v] }`,
    `${to} = keys(object(${from}) ?? {})`,
    `${to} = compact(object(${from}) ?? {})`,
    `${to} = parse_regex(string(.message) ?? "", r'(?P<word>[a-z]+)') ?? {}`,
    `${to} = encode_json(.)`,
    `${to} = split(string(${from}) ?? "", "a")`,
    `only_fields(., ["a", "message"])`,
    `${to} = "x" * 3000 + (string(${from}) ?? "")`,
    `del(${to}.a, compact: true)`,
    `${to} = del(.o.n)`,
    `${to} = exists(${from}.a) || exists(${from}[0])`,
  ])
}

function fallible(random: Random): string {
  const from = field(random)
  return random.pick([
    `to_int(${from})`,
    `upcase(${from})`,
    `string(${from})`,
    `parse_json(${from})`,
    `${from} + ${random.pick(['1', '"x"'])}`,
    `to_string(${from})`,
    `parse_timestamp(${from}, "%+")`,
    `to_float(${from})`,
    `to_bool(${from})`,
    `${from} * 2`,
    `${from} / 3`,
    `format_timestamp(${from}, "%Y-%j %H")`,
    `to_unix_timestamp(${from}, "milliseconds")`,
    `parse_key_value(${from})`,
    `replace(${from}, "a", "ü")`,
  ])
}

function value(random: Random): string {
  const from = field(random)
  const other = field(random)
  return random.pick([
    from,
    random.pick(constants),
    `(${fallible(random)}) ?? ${random.pick([other, ...constants])}`,
    `upcase(string(${from}) ?? "none")`,
    `downcase!(${from})`,
    `int!(${from}) + 1`,
    `[${from}, ${other}]`,
    `{"k": ${from}, "a": ${random.pick(constants)}}`,
    `exists(${from})`,
    `${from} == ${other}`,
    `contains(string(${from}) ?? "", "a")`,
    `length(string(${from}) ?? "") * 2`,
    `encode_json(${from})`,
    `match(string(${from}) ?? "", r'^w+$')`,
    `.orchestrator.${random.pick(['pod_name', 'pod_labels.app', 'none'])}`,
    `(string(${from}) ?? "") + "-" + (to_string(${other}) ?? "")`,
    `slice(string(${from}) ?? "", 0, 3) ?? ""`,
    random.chance(0.1) ? 'length(.)' : `is_string(${from})`,
  ])
}

function condition(random: Random): string {
  const from = field(random)
  return random.pick([
    `${from} == ${random.pick(constants)}`,
    `${from} != ${field(random)}`,
    `exists(${from})`,
    `!exists(${from}.a)`,
    `is_string(${from})`,
    `contains(string(${from}) ?? "", "${random.pick(['a', 't', 'ü'])}")`,
    `exists(${from}) && ${field(random)} == 1`,
    `is_null(${from}) || is_integer(${field(random)})`,
    `.stream == "stderr"`,
    `.orchestrator.pod_name == "b"`,
    `(int(${from}) ?? 0) > 5`,
    `match(string(${from}) ?? "", r'^[a-z"]')`,
    `(.timestamp > t'2026-11-23T10:11:12Z') ?? false`,
    `starts_with(string(${from}) ?? "", "t", case_sensitive: false)`,
    `is_object(${from}) || is_array(${from})`,
    `is_timestamp(${from}) && is_float(${field(random)})`,
    `${from} == .orchestrator.pod_labels.b`,
    `(to_int(${from}) ?? -1) == 7`,
    `%note == null`,
    `length(string(${from}) ?? "") > 3`,
    `random.none == true`.replace('random.', '.'),
  ])
}
