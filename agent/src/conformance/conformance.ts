// `npm run conformance -- remap|wire DIR [--only STEM,…]`: runs recorded cases and lists those that fail.
// The last line is `N passed, N failed`; the exit code is 1 if a case failed.

import { readdir } from 'node:fs/promises'
import { errorText } from '../errors.ts'
import { misuse, runScript } from '../tools/script.ts'

/** Runs the cases of files in the folder; `names` are without extension. */
interface Runner {
  run(dir: string, stems: readonly string[]): Promise<{ passed: number; failed: number }>
}

const runners: Readonly<Record<string, () => Promise<Runner>>> = {
  remap: () => import('./remap.ts'),
  wire: () => import('./wire.ts'),
}

/** The files of the folder that match; `*` matches any text. */
async function stemsIn(dir: string, only: string | undefined): Promise<string[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    throw misuse(`DIR is "${dir}", which cannot be read: ${errorText(error)}.`)
  })
  const stems = names
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => name.slice(0, -6))
    .sort()
  if (stems.length === 0) throw misuse(`DIR is "${dir}", which contains no case files (.jsonl).`)
  const wanted = only?.split(',') ?? ['*']
  for (const pattern of wanted) {
    if (!stems.some((stem) => matches(pattern, stem)))
      throw misuse(`--only is "${only}"; "${pattern}" matches none of ${stems.join(', ')}.`)
  }
  return stems.filter((stem) => wanted.some((pattern) => matches(pattern, stem)))
}

function matches(pattern: string, stem: string): boolean {
  const parts = pattern.split('*').map((part) => RegExp.escape(part))
  return new RegExp(`^${parts.join('.*')}$`).test(stem)
}

await runScript({
  call: `npm run conformance -- ${Object.keys(runners).join('|')} DIR`,
  about:
    'Runs the recorded cases of the remap language or of sinks in the files of DIR (e2e/conformance/remap or wire).',
  flags: { only: { type: 'string', value: 'STEM,…', help: 'Files to run, without .jsonl; `*` matches any text.' } },
  words: true,
  async run({ flags: { only }, words: [kind = '', dir, ...more] }) {
    const load = Object.hasOwn(runners, kind) ? runners[kind] : undefined
    if (load === undefined || dir === undefined || more.length > 0)
      throw misuse(`Pass the kind of cases, ${Object.keys(runners).join(' or ')}, and the folder that contains them.`)
    const stems = await stemsIn(dir, only)
    const { run } = await load()
    const { passed, failed } = await run(dir, stems)
    process.stdout.write(`${passed} passed, ${failed} failed\n`)
    return failed > 0 ? 1 : 0
  },
})
