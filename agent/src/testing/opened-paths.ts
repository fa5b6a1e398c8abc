// A process of its own that runs programs and says which of them asked the file system about a path. Node itself reports what is asked, to
// all modules and libraries alike: it must be started with `--permission-audit`. Requests come as JSON on standard input, and for each an
// answer stands in the array on standard output.

import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { noMetadata } from '../event/log.ts'
import { compileProgram } from '../remap/program.ts'
import type { ProgramRules } from '../remap/rules.ts'

export interface OpeningProgram {
  readonly source: string
  /** In the fields `path`, `paths` and `map` of the event, too. */
  readonly path: string
  readonly rules: ProgramRules
}

/** Every path that the file system was asked about since the program began. */
const asked = new Set<string>()
subscribe('node:permission-model:fs', (message) => asked.add((message as { readonly resource: string }).resource))

/** Whether anything was asked about the path while the program was compiled and run. */
async function opens({ source, path, rules }: OpeningProgram): Promise<boolean> {
  asked.clear()
  // `!` on what cannot fail is a warning only.
  const compiled = compileProgram(source, { keepResult: true, rules, network: false })
  if (compiled.ok) compiled.program.run({ path, paths: [path], map: { a: path } }, noMetadata, false)
  await setImmediate() // what is opened after the call
  return asked.has(path)
}

const answers: boolean[] = []
for (const program of JSON.parse(readFileSync(0, 'utf8')) as OpeningProgram[]) answers.push(await opens(program))
process.stdout.write(JSON.stringify(answers))
