// Measures programs without input and output: the `remap` and `filter` transforms of a topology on batches of lines. The benchmarks call
// it as `bench-remap.ts NAME EVENTS FILE P RULES`; it prints one line of JSON. RULES is `platform`, or `restricted` for programs with a
// budget, as in a namespaced Pipeline.

import { readFileSync } from 'node:fs'
import type { Transform } from '../component.ts'
import { type Batch, logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { platformRules, restrictedRules } from '../remap/rules.ts'
import { buildTransform } from '../testing/harness.ts'

const programs: Readonly<Record<string, readonly [type: string, options: object][]>> = {
  'remap-edit': [
    ['remap', { source: '. = parse_json!(.message)\n.env = "prod"\n.host = "node-1"\n.seen = true\ndel(.request_id)' }],
  ],
  'remap-regex': [
    [
      'remap',
      {
        source: `. = parse_regex!(.message, r'^(?P<host>\\S+) (?P<identity>\\S+) (?P<user>\\S+) \\[(?P<time>[^\\]]+)\\] "(?P<request>[^"]*)" (?P<status>\\d+) (?P<size>\\d+)$')
.status = to_int!(.status)`,
      },
    ],
  ],
  'remap-filter': [
    ['remap', { source: '. = parse_json!(.message)' }],
    ['filter', { condition: 'int!(.status) >= 500' }],
  ],
  'remap-object': [
    [
      'remap',
      {
        source: `. = object!(parse_json!(.message))
count = 0
for_each(.) -> |_key, value| { if is_string(value) { count = count + 1 } }
. = map_keys(.) -> |key| { upcase(key) }
. = merge(., { "strings": count, "kind": "sample" })`,
      },
    ],
  ],
}

async function main(): Promise<void> {
  const [name = '', eventsText = '', file = '', p = '', rulesName = ''] = process.argv.slice(2)
  const steps = programs[name]
  if (steps === undefined) throw new Error(`There is no program "${name}".`)
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  const transforms: Transform[] = []
  const rules = rulesName === 'restricted' ? restrictedRules : platformRules
  for (const [type, options] of steps) transforms.push(await buildTransform(type, options, undefined, rules))

  let out = 0
  const run = (index: number, batch: Batch): undefined => {
    const transform = transforms[index]
    if (transform === undefined) {
      out += batch.count
      batch.finalizer.release(1, 'delivered')
      return
    }
    void transform.transform(batch, { send: (next) => run(index + 1, next) })
  }

  const size = 800
  const total = Number(eventsText)
  const rounds = 5
  const start = process.cpuUsage()
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    let cpu = 0
    for (let from = 0; from < total / rounds; from += size) {
      const events: LogEvent[] = []
      for (let index = 0; index < size; index++) {
        events.push(new LogEvent({ message: lines[(from + index) % lines.length] as string }))
      }
      const before = process.cpuUsage()
      run(0, logBatch(events, new Finalizer()))
      const used = process.cpuUsage(before)
      cpu += used.user + used.system
    }
    best = Math.min(best, (cpu * 1000) / (Math.ceil(total / rounds / size) * size))
  }
  if (out === 0) throw new Error('The program returned no events.')
  const bytes = lines.reduce((sum, line) => sum + line.length, 0) / lines.length
  const figures = {
    events_per_s: Math.round(1e9 / best),
    mb_per_s: Math.round(((1e9 / best) * bytes) / 1e6),
    cpu_s_per_million: Math.round(best) / 1000,
    start_cpu_s: Math.round((start.user + start.system) / 1000) / 1000,
    steady_cpu_s_per_million: Math.round(best) / 1000,
    peak_rss_mb: Math.round(process.resourceUsage().maxRSS / 1024),
    p_ns: Number(p),
    cpu_p: Math.round((best / Number(p)) * 1000) / 1000,
  }
  console.log(JSON.stringify(figures))
}

await main()
