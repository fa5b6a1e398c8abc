// `npm run bench -- SCENARIO…`: runs scenarios, or `all`, and prints their figures. The agent runs as its command from a
// configuration file, in a process of its own; the receiver is another process.

import { misuse, runScript } from '@penstock/agent/testing/script'
import { programOf } from '../program.ts'
import { calibrate } from './calibrate.ts'
import { measure, measureProgram } from './counted.ts'
import { buffer, bufferRestart, soakFaults } from './disk.ts'
import { idle, soak } from './long.ts'
import { neighbours } from './neighbours.ts'
import { aliases, programs, scenarios } from './scenarios.ts'
import { type Format, type Pace, peak, steady } from './steady.ts'

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
  readonly mode: Pace
  readonly format: Format
}

async function figuresOf(name: string, given: Given): Promise<object> {
  const { runs, seconds, mode, format } = given
  const events = given.events ?? 2_000_000
  if (name === 'calibrate') return { scenario: name, ...calibrate() }
  if (name === 'steady') return steady(mode, format, seconds)
  if (name === 'peak') return peak(format, given.events)
  if (name.startsWith('idle-')) return idle(name, Number(name.slice(5)), seconds ?? 20)
  if (name === 'neighbours') return neighbours(seconds ?? 20)
  if (name === 'soak') return soak(seconds ?? 600)
  if (name === 'soak-faults') return soakFaults(seconds ?? 600)
  if (name === 'buffer-restart') return bufferRestart(events)
  if (name.startsWith('buffer')) return buffer(name, events)
  return programs.some((program) => program === name) ? measureProgram(name, events) : measure(name, events, runs)
}

/** Lines that did not come exactly once make every other figure worthless. */
function faults(figures: object): string | undefined {
  const { scenario, lost = 0, doubled = 0 } = figures as { scenario: string; lost?: number; doubled?: number }
  return lost === 0 && doubled === 0 ? undefined : `${scenario}: ${lost} lines were lost, and ${doubled} came twice.`
}

const known = [
  'steady',
  'peak',
  'calibrate',
  ...Object.keys(scenarios),
  ...Object.keys(aliases),
  ...programs,
  'buffer',
  'buffer-parsed',
  'buffer-restart',
  'idle-100',
  'idle-500',
  'idle-1000',
  'idle-5000',
  'neighbours',
  'soak',
  'soak-faults',
]

await runScript({
  call: 'npm run bench -- SCENARIO…',
  about: `Runs scenarios one after another and prints their figures.\n\nScenarios: ${known.join(', ')}; all of them but those that take long: all`,
  flags: {
    json: { type: 'boolean', help: 'An object a line.' },
    events: { type: 'number', whole: true, minimum: 1, value: 'N', help: 'How many, where a count ends it (2000000).' },
    runs: { type: 'number', whole: true, minimum: 1, value: 'N', help: 'Of which the best counts (3).' },
    for: { type: 'number', minimum: 1, value: 'SECONDS', help: 'How long, where time ends it (20; soak: 600).' },
    mode: {
      type: 'string',
      oneOf: ['smooth', 'burst'],
      value: 'MODE',
      help: 'How lines come in `steady`: one by one, or those of a second at once (smooth).',
    },
    format: {
      type: 'string',
      oneOf: ['json', 'raw'],
      value: 'FORMAT',
      help: 'Whether `steady` and `peak` parse the lines (json), or leave them as they are.',
    },
  },
  words: true,
  async run({ flags: { json, events, runs = 3, for: seconds, mode = 'smooth', format = 'json' }, words }) {
    const names = words.flatMap((name) =>
      name === 'all' ? known.filter((each) => !each.startsWith('soak') && each !== 'buffer-restart') : [name],
    )
    if (names.length === 0) throw misuse(`Name a scenario: ${known.join(', ')}, all.`)
    const unknown = names.filter((name) => !known.includes(name) && !/^idle-[1-9]\d{0,4}$/.test(name))
    if (unknown.length > 0) throw misuse(`There is no scenario "${unknown.join('", "')}": ${known.join(', ')}, all.`)
    if (names.some((name) => name !== 'calibrate')) programOf('agent') // packed before anything is measured
    let exitCode = 0
    for (const name of names) {
      const figures = await figuresOf(name, { events, runs, seconds, mode: mode as Pace, format: format as Format })
      print(figures, json)
      const problem = faults(figures)
      if (problem === undefined) continue
      console.error(problem)
      exitCode = 1
    }
    return exitCode
  },
})
