// `npm run bench -- SCENARIO…`: runs scenarios, or `all`, and prints their figures. The agent runs its normal command with a configuration
// file, in a separate process; so does the receiver.

import { misuse, runScript } from '@penstock/agent/tools/script'
import { programOf } from '../program.ts'
import { calibrate } from './calibrate.ts'
import { measure, measureProgram } from './counted.ts'
import { buffer, bufferRestart, soakFaults } from './disk.ts'
import { faults } from './figures.ts'
import { hostile } from './hostile.ts'
import { kinds } from './kinds.ts'
import { idle, soak } from './long.ts'
import { neighbours } from './neighbours.ts'
import { oddKinds } from './odd-lines.ts'
import { peers } from './peers.ts'
import { programs, scenarios } from './scenarios.ts'
import { type Format, manyShapes, type Pace, peak, silence, steady } from './steady.ts'

function print(figures: object, json: boolean): void {
  if (json) {
    console.log(JSON.stringify(figures))
    return
  }
  const { scenario, ...rest } = figures as { scenario: string }
  console.log(scenario)
  const show = (part: object, indent: string) => {
    for (const [name, value] of Object.entries(part)) {
      if (typeof value === 'object') {
        console.log(`${indent}${name}`)
        show(value, `${indent}  `)
      } else console.log(`${indent}${name.padEnd(20)} ${value}`)
    }
  }
  show(rest, '  ')
}

interface Given {
  readonly events: number | undefined
  readonly runs: number
  readonly seconds: number | undefined
  readonly rate: number | undefined
  readonly mode: Pace
  readonly format: Format
}

/** Flags that only some scenarios support. */
type Flag = 'events' | 'runs' | 'for' | 'rate' | 'mode' | 'format'

interface Listed {
  readonly about: string
  readonly takes: readonly Flag[]
  /** Whether it takes minutes or has special requirements, so that `all` skips it. */
  readonly long?: true
  run(given: Given, name: string): object | Promise<object>
}

const defaultEvents = 2_000_000
const counted = (about: string): Listed => ({
  about,
  takes: ['events', 'runs'],
  run: ({ events = defaultEvents, runs }, name) => measure(name, events, runs),
})
const program = (about: string): Listed => ({
  about: `${about}, without input and output`,
  takes: ['events', 'runs'],
  run: ({ events = defaultEvents, runs }, name) => measureProgram(name, events, runs),
})
const silent = (files: number): Listed => ({
  about: `an agent with ${files.toLocaleString('en')} silent files, for 20 s; other numbers also work`,
  takes: ['for'],
  run: ({ seconds = 20 }, name) => idle(name, Number(name.slice('idle-'.length)), seconds),
})

const list: Readonly<Record<string, Listed>> = {
  steady: {
    about: '10,000 application lines per second to 100 pod logs, for 60 s',
    takes: ['mode', 'format', 'for', 'rate'],
    run: ({ mode, format, seconds, rate }) => steady(mode, format, seconds, rate),
  },
  peak: {
    about: 'a million of these lines, as fast as one CPU can process them',
    takes: ['format', 'events'],
    run: ({ format, events }) => peak(format, events),
  },
  keys: {
    about: 'lines with ever new keys, compared with lines of one shape, for 10 minutes',
    takes: ['for'],
    long: true,
    run: ({ seconds }) => manyShapes('keys', seconds),
  },
  shapes: {
    about: '20,000 shapes in rotation, compared with lines of one shape, for 10 minutes',
    takes: ['for'],
    long: true,
    run: ({ seconds }) => manyShapes('shapes', seconds),
  },
  kinds: {
    about: 'unusual kinds of lines, on both lanes, compared with lines of one shape; `kind-NAME`: of one kind',
    takes: [],
    long: true,
    run: () => kinds(),
  },
  silence: {
    about: 'lines in files that were silent for 15 s or more, for 2 minutes',
    takes: ['for'],
    long: true,
    run: ({ seconds }) => silence(seconds),
  },
  peers: {
    about: 'steady and peak in comparison with other agents, 20 s each in turn',
    takes: ['runs', 'for', 'events'],
    long: true,
    run: ({ runs, seconds, events }) => peers(runs, seconds, events),
  },
  calibrate: { about: 'P, and the copy and compression speed of this machine', takes: [], run: () => calibrate() },
  ...Object.fromEntries(Object.entries(scenarios).map(([name, { about }]) => [name, counted(about)])),
  ...Object.fromEntries(Object.entries(programs).map(([name, about]) => [name, program(about)])),
  buffer: {
    about: 'lines into a disk buffer and back',
    takes: ['events'],
    run: ({ events = defaultEvents }, name) => buffer(name, events),
  },
  'buffer-parsed': {
    about: 'the same with objects',
    takes: ['events'],
    run: ({ events = defaultEvents }, name) => buffer(name, events),
  },
  'buffer-restart': {
    about: 'a disk buffer after a kill, until its first batch',
    takes: ['events'],
    long: true,
    run: ({ events = defaultEvents }) => bufferRestart(events),
  },
  ...Object.fromEntries([100, 500, 1000, 5000].map((files) => [`idle-${files}`, silent(files)])),
  neighbours: {
    about: 'nine pipelines together with an expensive one',
    takes: ['for'],
    run: ({ seconds = 20 }) => neighbours(seconds),
  },
  hostile: {
    about: 'ten victims together with one hostile tenant of each kind, on one agent, for a minute',
    takes: ['for'],
    long: true,
    run: ({ seconds = 60 }) => hostile(seconds),
  },
  soak: {
    about: '5 MB/s into one file with rotations, for 10 minutes',
    takes: ['for'],
    long: true,
    run: ({ seconds = 600 }) => soak(seconds),
  },
  'soak-faults': {
    about: 'a disk buffer with a destination that fails every few seconds, for 10 minutes',
    takes: ['for'],
    long: true,
    run: ({ seconds = 600 }) => soakFaults(seconds),
  },
}

function listed(name: string): Listed | undefined {
  if (Object.hasOwn(list, name)) return list[name]
  const kind = name.startsWith('kind-') ? name.slice('kind-'.length) : ''
  if (Object.hasOwn(oddKinds, kind)) return { about: '', takes: [], run: () => kinds([kind]) }
  const files = Number(/^idle-([1-9]\d{0,4})$/.exec(name)?.[1] ?? 0)
  return files === 0 ? undefined : silent(files)
}

const known = Object.keys(list)
const shown = Object.entries(list).map(([name, { about }]) => `  ${name.padEnd(18)} ${about}`)

// Exiting also ends its child processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

await runScript({
  call: 'npm run bench -- SCENARIO…',
  about: `Runs scenarios one after another and prints their figures, which e2e/bench/README.md explains.

Scenarios:
${shown.join('\n')}
  ${'all'.padEnd(18)} all of them except those that take minutes`,
  flags: {
    json: { type: 'boolean', help: 'Print one JSON object per line.' },
    for: {
      type: 'string',
      number: 'any',
      minimum: 1,
      value: 'SECONDS',
      help: 'Duration of scenarios that are limited by time.',
    },
    events: {
      type: 'string',
      number: 'whole',
      minimum: 1,
      value: 'N',
      help: 'Number of events of scenarios that are limited by a count (2000000; for peak 1000000).',
    },
    runs: {
      type: 'string',
      number: 'whole',
      minimum: 1,
      value: 'N',
      help: 'Number of runs (3). The best one counts; for peers, the median.',
    },
    mode: {
      type: 'string',
      oneOf: ['smooth', 'burst'],
      value: 'MODE',
      help: 'For steady: smooth (lines one by one) or burst (each file gets the lines of one second at once).',
    },
    format: {
      type: 'string',
      oneOf: ['json', 'raw'],
      value: 'FORMAT',
      help: 'For steady and peak: json (the agent parses the lines) or raw (it does not).',
    },
    rate: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'For steady: lines per second (10000).' },
  },
  words: true,
  async run({ flags, words }) {
    const { json, events, runs = 3, for: seconds, rate, mode = 'smooth', format = 'json' } = flags
    const names = words.flatMap((name) => (name === 'all' ? known.filter((each) => list[each]?.long !== true) : [name]))
    if (names.length === 0) throw misuse(`Name a scenario: ${known.join(', ')}, all.`)
    const unknown = names.filter((name) => listed(name) === undefined)
    if (unknown.length > 0) throw misuse(`There is no scenario "${unknown.join('", "')}": ${known.join(', ')}, all.`)
    const taken = new Set<string>(['json', ...names.flatMap((name) => listed(name)?.takes ?? [])])
    const givenFlags = Object.entries(flags).filter(([, value]) => value !== undefined && value !== false)
    const unused = givenFlags.map(([flag]) => flag).filter((flag) => !taken.has(flag))
    if (unused.length > 0) {
      const takers = known.filter((name) => list[name]?.takes.includes(unused[0] as Flag))
      throw misuse(`${names.join(', ')} does not support --${unused[0]}, which is for ${takers.join(', ')}.`)
    }
    if (names.some((name) => name !== 'calibrate')) programOf('agent') // pack it before the measurement
    const given = { events, runs, seconds, rate, mode: mode as Pace, format: format as Format }
    let exitCode = 0
    for (const name of names) {
      const made = await listed(name)?.run(given, name)
      for (const figures of Array.isArray(made) ? made : [made]) {
        print({ scenario: name, ...figures }, json)
        const problem = faults(figures)
        if (problem === undefined) continue
        console.error(`${name}: ${problem}`)
        exitCode = 1
      }
    }
    return exitCode
  },
})
