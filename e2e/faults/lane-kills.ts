// `npx node --conditions=source e2e/faults/lane-kills.ts [--kills N] [--seed N]`: kills an agent that reads pod logs as bytes at random
// moments, every other time with a power failure. Disk buffers contain all kinds of lines: unchanged, merged, and with computed fields. At the
// end, an agent without the byte lane reads the same logs. All lines must have arrived with the same content.

import { setTimeout as wait } from 'node:timers/promises'
import { Random } from '@penstock/agent/testing/random'
import { runScript } from '@penstock/agent/tools/script'
import { Destination, type Mood } from './destination.ts'
import { cutPower } from './kills.ts'
import { Contents, PodLines } from './pod-lines.ts'
import { eventually, impatientSink, onDisk, Victim } from './victim.ts'

export interface LaneKillReport {
  readonly seed: number
  readonly kills: number
  readonly lines: number
  /** Number of events that stayed bytes in the last run of the agent, and of those that did not. */
  readonly asBytes: number
  readonly asObjects: number
  readonly doubled: number
  readonly problems: readonly string[]
}

/** Programs by sink. */
const programs: Readonly<Record<string, string>> = {
  merged: '. = merge(., object(parse_json(.message) ?? {}) ?? {})\n.env = "prod"\ndel(.a)',
  computed:
    '. |= object(parse_json(.message) ?? {}) ?? {}\ndel(.timestamp)\n.level = upcase(string(.level) ?? "none")\n.pod = .orchestrator.pod_name\n.m = .n',
  memory:
    'p, err = parse_json(.message)\nif err == null && is_object(p) { . = merge(., object!(p)) } else { .raw = true }\ndel(.file)',
}
const paths = ['stored', ...Object.keys(programs)]

/** An `http` sink that writes one JSON event per line. */
export function jsonSink(input: string, uri: string, buffer: object): Record<string, unknown> {
  return { ...impatientSink(input, uri, buffer), encoding: { codec: 'json' } }
}

function configOf(lines: PodLines, url: string, isBytes: boolean): Record<string, unknown> {
  const buffer = (path: string) => (isBytes && path !== 'memory' ? onDisk() : { max_events: 2000 })
  return {
    remap: { byte_lane: isBytes },
    sources: { pods: lines.source },
    transforms: Object.fromEntries(
      Object.entries(programs).map(([path, source]) => [path, { type: 'remap', inputs: ['pods'], source }]),
    ),
    sinks: Object.fromEntries(
      paths.map((path) => [`to_${path}`, jsonSink(path in programs ? path : 'pods', `${url}/${path}`, buffer(path))]),
    ),
  }
}

/** The output of an agent that converts all lines to objects and is not killed. */
export async function objectsOf(
  config: (url: string) => Record<string, unknown>,
  allPaths: readonly string[],
  lines: PodLines,
): Promise<Contents> {
  const contents = new Contents()
  await using destination = await new Destination(contents.take).start()
  await using agent = new Victim()
  await agent.start(config(destination.url))
  await arrived(contents, allPaths, lines.written)
  await agent.signal('SIGTERM')
  return contents
}

/** Waits until all lines have arrived, while lines arrive. */
async function arrived(contents: Contents, allPaths: readonly string[], lines: number): Promise<void> {
  const seen = () => allPaths.reduce((sum, path) => sum + contents.count(`/${path}`), 0)
  for (let [before, since] = [seen(), performance.now()]; seen() < lines * allPaths.length; await wait(200)) {
    if (seen() > before) [before, since] = [seen(), performance.now()]
    if (performance.now() - since > 120_000) return
  }
}

export async function killLanes(kills: number, seed: number, maxMs = 1500): Promise<LaneKillReport> {
  const chance = new Random(seed)
  await using lines = await PodLines.start(seed)
  const contents = new Contents()
  await using destination = await new Destination(contents.take).start()
  await using victim = new Victim()
  const config = configOf(lines, destination.url, true)
  const feeding = setInterval(() => lines.append(1 + chance.below(20)), 40)
  try {
    for (let kill = 0; kill < kills; kill++) {
      await victim.start(config)
      for (let left = chance.between(50, maxMs); left > 0; ) {
        destination.mood = chance.pick<Mood>(['well', 'well', 'failing', 'hanging', 'slow'])
        const part = Math.min(left, chance.between(50, 500))
        await wait(part)
        left -= part
      }
      await victim.signal('SIGKILL')
      destination.release()
      if (kill % 2 === 0) continue
      for (const path of paths) if (path !== 'memory') cutPower(victim.buffer(`to_${path}`), chance)
    }
  } finally {
    clearInterval(feeding)
  }
  destination.mood = 'well'
  await victim.start(config)
  lines.append(200)
  await arrived(contents, paths, lines.written)
  const asBytes = await victim.metric('byte_lane_events_total', 'reason="bytes"')
  const asObjects = (await victim.metric('byte_lane_events_total')) - asBytes
  const empty = async () => (await victim.metric('buffer_events')) === 0
  await eventually('the buffers are empty', 120_000, empty)
  await victim.signal('SIGTERM')
  const expected = await objectsOf((url) => configOf(lines, url, false), paths, lines)
  const problems = paths.flatMap((path) => contents.problems(expected, `/${path}`, true))
  for (const path of paths) {
    const count = expected.count(`/${path}`)
    if (count < lines.written)
      problems.push(`The object lane has delivered ${count} of ${lines.written} lines to ${path}.`)
  }
  return { seed, kills, lines: lines.written, asBytes, asObjects, doubled: contents.doubled, problems }
}

if (import.meta.main) {
  await runScript({
    call: 'npx node --conditions=source e2e/faults/lane-kills.ts',
    about:
      'Kills an agent that reads pod logs as bytes, and compares its deliveries with the object lane. The exit code is 1 if they differ.',
    flags: {
      kills: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'Number of kills (50).' },
      seed: { type: 'string', number: 'whole', value: 'N', help: 'Seed of the faults; random by default.' },
    },
    async run({ flags: { kills = 50, seed = Date.now() % 1_000_000 } }) {
      console.log(`seed ${seed}`)
      const { problems, ...report } = await killLanes(kills, seed)
      console.log(JSON.stringify({ ...report, problems: problems.slice(0, 20) }, undefined, 2))
      if (problems.length > 20) console.log(`${problems.length - 20} more problems`)
      return problems.length > 0 ? 1 : 0
    },
  })
}
