// Takes the pictures for the guide: commands in terminals of 80 and 120 columns, with and without colours. The real commands run in a
// pseudo terminal; those that need a cluster read a recorded one.

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deriveFolders } from '@penstock/agent/tools/generate'
import { runScript } from '@penstock/agent/tools/script'
import { recordedCluster } from './screens/cluster.ts'
import { pictureOf } from './screens/picture.ts'
import { linesOf, type Recording, record, type Screen } from './screens/terminal.ts'

const root = join(import.meta.dirname, '../../..')
export const screensFolder = join(root, 'operator/guide/screens')

interface Shot {
  readonly name: string
  /** The heading on the page with all pictures. */
  readonly heading: string
  /** The command that a person types. */
  readonly typed: string
  /** The arguments of the command that runs, if it differs. */
  readonly args: readonly string[]
  /** Terminal rows, for a command that fills the screen. Other commands scroll. */
  readonly rows?: number
  readonly keys?: Recording['keys']
  readonly until?: Recording['until']
  readonly steady?: () => (text: string) => string
}

const pod = 'web-6d9f7c5b8-x2x7p'

/** Number of events in the first picture, in addition to the first three with their lines. */
const eventCount = 8

/** Replaces values that differ between runs with constants: ports, temporary folders, event times. */
function steadyRun(): (text: string) => string {
  const first = Date.parse('2026-03-02T12:41:03.200Z')
  let count = 0
  const next = (time: string) => new Date(first + count++ * 200).toISOString().slice(11, 11 + time.length)
  return (text) =>
    text
      .replace(/127\.0\.0\.1:\d{4,5}/g, '127.0.0.1:41903')
      .replace(/\S*\/penstock-run-\w{6}/g, '/tmp/penstock-run-k7Qx2d')
      .replace(/\((\S+:\d+): [^)]+\)/g, '($1: ENOTFOUND)')
      .replace(/(?<!\d)\d\d:\d\d:\d\d(?:\.\d{3})?/g, next)
}

const eventsOn = (screen: Screen) => {
  const lines = linesOf(screen)
  const from = lines.findIndex((line) => line.startsWith('From here on'))
  return from < 0 ? 0 : lines.slice(from).filter((line) => /^\d\d:\d\d:\d\d/.test(line)).length
}

export const shots: readonly Shot[] = [
  {
    name: 'start',
    heading: 'The first start',
    typed: 'npm start',
    args: ['run', '-f', 'examples/quickstart'],
    until: (screen) =>
      eventsOn(screen) === eventCount && linesOf(screen).some((line) => line.startsWith('Ctrl-C exits.')),
    steady: steadyRun,
  },
  {
    name: 'lint',
    heading: 'Mistakes in a Pipeline',
    typed: 'penstock lint -f first.yaml',
    args: ['lint', '-f', 'first.yaml'],
  },
  {
    name: 'status',
    heading: 'The state of a Pipeline',
    typed: 'penstock status checkout',
    args: ['status', 'checkout'],
  },
  { name: 'why', heading: 'Why a pod is read or not', typed: `penstock why ${pod}`, args: ['why', pod] },
  {
    name: 'top',
    heading: 'Live figures',
    typed: 'penstock top -A',
    args: ['top', '-A'],
    rows: 12,
    keys: [{ when: 'q: quit', press: '\u001b[C\u001b[C' }],
    // `top` draws the heading first and the keys last.
    until: (screen) => /IN\/S↓.*q: quit/s.test(linesOf(screen).join('\n')),
  },
  {
    name: 'details',
    heading: 'A Pipeline in `top`',
    typed: 'penstock top -A, then Enter',
    args: ['top', '-A'],
    rows: 30,
    // Selects the second row, in the order of incoming events.
    keys: [{ when: 'q: quit', press: '\u001b[C\u001b[C\u001b[B\u001b[B\r' }],
    until: (screen) => /tests .*Esc: back/s.test(linesOf(screen).join('\n')),
  },
]

interface Look {
  readonly columns: 80 | 120
  readonly color: boolean
}

export const looks: readonly Look[] = [
  { columns: 80, color: true },
  { columns: 80, color: false },
  { columns: 120, color: true },
  { columns: 120, color: false },
]

export const fileOf = ({ name }: Shot, { columns, color }: Look): string =>
  `${name}-${columns}${color ? '' : '-plain'}.svg`

/** Takes the picture of a command in a terminal. */
export async function take(shot: Shot, { columns, color }: Look): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-screens-'))
  try {
    await using cluster = await recordedCluster(folder)
    // A copy, so that messages show a realistic path.
    copyFileSync(join(import.meta.dirname, 'screens/first.yaml'), join(folder, 'first.yaml'))
    const isStart = shot.name === 'start'
    const main = join(root, 'operator/src/main.ts')
    const words = [process.execPath, '--conditions=source', main, ...shot.args].map((word) => `'${word}'`)
    const steady = shot.steady?.()
    const screen = await record({
      command: `env --chdir='${isStart ? root : folder}' ${words.join(' ')}`,
      env: {
        KUBECONFIG: cluster.kubeconfig,
        TERM: 'xterm-256color',
        COLORTERM: '',
        ...(color ? {} : { NO_COLOR: '1' }),
      },
      columns,
      rows: shot.rows ?? 100,
      ...(shot.rows === undefined ? { before: `$ ${shot.typed}\r\n` } : {}),
      ...(shot.keys === undefined ? {} : { keys: shot.keys }),
      ...(shot.until === undefined ? {} : { until: shot.until }),
      ...(steady === undefined ? {} : { steady }),
    })
    return pictureOf(screen, `${shot.typed}, in a terminal of ${columns} columns`)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The page with all pictures. */
function gallery(): string {
  const sections = shots.map((shot) => {
    const images = looks.map((look) => {
      const title = `\`${shot.typed}\`, ${look.columns} columns${look.color ? '' : ', without colours'}`
      return `![${title.replaceAll('`', '')}](${fileOf(shot, look)})`
    })
    return `## ${shot.heading}\n\n\`${shot.typed}\`\n\n${images.join('\n\n')}\n`
  })
  const about = 'Commands in terminals of 80 and 120 columns, with and without colours (`NO_COLOR`, `--color never`).'
  return [`# Screens\n\n${about} \`npm run screens\` takes the pictures.\n`, ...sections].join('\n')
}

if (import.meta.main) {
  await runScript({
    call: 'npm run screens --',
    about: 'Takes the pictures of commands in operator/guide/screens. Needs `script` of util-linux.',
    flags: {
      check: { type: 'boolean', help: 'Write nothing, and fail if the output of a command has changed.' },
      only: { type: 'string', value: 'NAME', help: `Only this command: ${shots.map(({ name }) => name).join(', ')}.` },
    },
    async run({ flags }) {
      const files = new Map<string, string>()
      for (const shot of shots) {
        if (flags.only !== undefined && flags.only !== shot.name) continue
        for (const look of looks) files.set(fileOf(shot, look), await take(shot, look))
      }
      if (flags.only === undefined) files.set('README.md', gallery())
      const derived = { name: 'operator/guide/screens', path: screensFolder, files, shared: true } as const
      return await deriveFolders([derived], flags.check === true, 'npm run screens')
    },
  })
}
