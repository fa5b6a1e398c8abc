// Measures the cost of a program's budget: compiles each program twice, for a namespaced Pipeline and for the platform, and runs both in
// alternation in one process. Prints one line of JSON per program.

import { noMetadata } from '../event/log.ts'
import { isFailure } from '../remap/function.ts'
import { compileProgram, type Program } from '../remap/program.ts'
import { type ProgramRules, platformRules, restrictedRules } from '../remap/rules.ts'
import { misuse, runScript } from '../tools/script.ts'

/** An object of twelve fields, as JSON. */
const line = JSON.stringify({
  timestamp: '2026-01-01T00:00:00.123Z',
  level: 'info',
  logger: 'shop.checkout',
  message: 'order 81723 was paid after 3 attempts',
  request_id: '0f9d2c84-6a1e-4c1b-9a1c-2f6b1d7e5a90',
  user: 'anna',
  method: 'POST',
  path: '/v1/orders/81723/pay',
  status: 200,
  duration_ms: 18.4,
  bytes: 5321,
  cached: false,
})

const access = '10.0.0.7 - anna [10/Oct/2026:13:55:36 +0000] "GET /index.html HTTP/1.1" 200 5321'

const programs: Readonly<Record<string, readonly [message: string, source: string]>> = {
  'edit fields': [line, '. = parse_json!(.message)\n.env = "prod"\n.host = "node-1"\n.seen = true\ndel(.request_id)'],
  'parse json': [
    line,
    '.data = object!(parse_json!(string!(.message)))\n.level = upcase(string(.data.level) ?? "info")',
  ],
  replace: [line, `.message = replace(string!(.message), "order", "purchase")`],
  'replace a pattern': [line, `.message = replace(string!(.message), r'\\d+', "*")`],
  'replace and join': [
    line,
    '. = object!(parse_json!(.message))\n.path = replace(string!(.path), "/", ".")\n.tags = join!(["a", string!(.user), string!(.method)], ",")',
  ],
  'for each of twelve fields': [
    line,
    `. = object!(parse_json!(.message))
count = 0
for_each(.) -> |_key, value| { if is_string(value) { count = count + 1 } }
.strings = count`,
  ],
  'for each, with text': [
    line,
    `. = object!(parse_json!(.message))
text = ""
for_each(.) -> |key, value| { text = text + key + "=" + to_string!(value) + " " }
.text = text`,
  ],
  'map keys': [line, '. = object!(parse_json!(.message))\n. = map_keys(.) -> |key| { upcase(key) }'],
  'map keys, replacing': [
    line,
    '. = object!(parse_json!(.message))\n. = map_keys(., recursive: true) -> |key| { replace(key, "_", ".") }',
  ],
  'map values': [
    line,
    '. = object!(parse_json!(.message))\n. = map_values(.) -> |value| { if is_string(value) { downcase!(value) } else { value } }',
  ],
  'loops and a merge': [
    line,
    `. = object!(parse_json!(.message))
count = 0
for_each(.) -> |_key, value| { if is_string(value) { count = count + 1 } }
. = map_keys(.) -> |key| { upcase(key) }
. = merge(., { "strings": count, "kind": "sample" })`,
  ],
  'loops alone': [
    line,
    `d = {"a": "x", "b": 2, "c": "z", "d": 4, "e": "v", "f": 6, "g": "u", "h": 8, "i": "t", "j": 10, "k": "s", "l": 12}
count = 0
for_each(d) -> |_key, value| { if is_string(value) { count = count + 1 } }
.count = count`,
  ],
  'texts added': [line, '.text = string!(.message) + " from " + string!(.host) + ":" + string!(.port)'],
  grok: [
    access,
    `. = parse_groks!(string!(.message), ["%{IPORHOST:client} - %{USER:user} \\\\[%{HTTPDATE:at}\\\\] \\"%{WORD:verb} %{NOTSPACE:path} HTTP/%{NUMBER:version}\\" %{INT:status} %{INT:size}"])`,
  ],
}

function compiled(source: string, rules: ProgramRules): Program {
  const result = compileProgram(source, { rules })
  if (!result.ok) throw new Error(result.rendered)
  return result.program
}

/** CPU time per event in nanoseconds. */
function timed(program: Program, message: string, events: number): number {
  const before = process.cpuUsage()
  for (let index = 0; index < events; index++) {
    const result = program.run({ message, host: 'node-1', port: '8080' }, noMetadata, true)
    if (isFailure(result)) throw new Error(result.message)
  }
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / events
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[sorted.length >> 1] as number
}

/** Events per round. */
const turnNs = 20_000_000
/** The engine favours the program that it compiles first, so pairs are compiled in both orders. */
const pairs = 4

interface Cost {
  readonly freeNs: number
  readonly meteredNs: number
  readonly ratio: number
}

function measured(message: string, source: string, rounds: number): Cost {
  const costs: Cost[] = []
  for (let pair = 0; pair < pairs; pair++) {
    const free = compiled(source, platformRules)
    const metered = compiled(source, restrictedRules)
    const order = pair % 2 === 0 ? [free, metered] : [metered, free]
    for (const program of [...order, ...order]) timed(program, message, 20_000)
    const events = Math.ceil(turnNs / timed(free, message, 5_000))
    for (let round = 0; round < rounds; round++) {
      const turn = round % 2 === 0 ? [free, metered] : [metered, free]
      const times = new Map(turn.map((program) => [program, timed(program, message, events)]))
      const freeNs = times.get(free) as number
      const meteredNs = times.get(metered) as number
      costs.push({ freeNs, meteredNs, ratio: meteredNs / freeNs })
    }
  }
  return {
    freeNs: median(costs.map(({ freeNs }) => freeNs)),
    meteredNs: median(costs.map(({ meteredNs }) => meteredNs)),
    ratio: median(costs.map(({ ratio }) => ratio)),
  }
}

await runScript({
  call: 'npx node --conditions=source agent/src/bench/bench-budgets.ts',
  about: 'Prints the CPU time per event of each program without and with a budget, and the cost of the budget.',
  flags: {
    rounds: {
      type: 'string',
      number: 'whole',
      value: 'N',
      minimum: 1,
      help: 'Rounds for each pair of programs; 11 by default.',
    },
    only: { type: 'string', value: 'TEXT', help: 'Only programs whose names contain this text.' },
  },
  run({ flags }) {
    const chosen = Object.entries(programs).filter(([name]) => name.includes(flags.only ?? ''))
    if (chosen.length === 0) {
      throw misuse(`--only is "${flags.only}"; the programs are ${Object.keys(programs).join('; ')}.`)
    }
    for (const [program, [message, source]] of chosen) {
      const { freeNs, meteredNs, ratio } = measured(message, source, flags.rounds ?? 11)
      const figures = { free_ns: Math.round(freeNs), metered_ns: Math.round(meteredNs) }
      console.log(JSON.stringify({ program, ...figures, cost_percent: Math.round((ratio - 1) * 1000) / 10 }))
    }
    return 0
  },
})
