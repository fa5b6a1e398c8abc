// A separate process that runs programs and reports which of them accessed a path. Node itself reports accesses of all modules and
// libraries if it is started with `--permission-audit`. The programs are a JSON array on standard input; standard output gets a JSON array
// with one result per program.

import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { noMetadata } from '../event/log.ts'
import { compileProgram } from '../remap/program.ts'
import type { ProgramRules } from '../remap/rules.ts'

export interface OpeningProgram {
  readonly source: string
  /** The path, which the fields `path`, `paths` and `map` of the event also contain. */
  readonly path: string
  readonly rules: ProgramRules
}

/** All paths that have been accessed since the program began. */
const asked = new Set<string>()
subscribe('node:permission-model:fs', (message) => asked.add((message as { readonly resource: string }).resource))

/** Whether compiling and running the program accessed the path. */
async function opens({ source, path, rules }: OpeningProgram): Promise<boolean> {
  asked.clear()
  // `!` on a call that cannot fail is only a warning.
  const compiled = compileProgram(source, { keepResult: true, rules, network: false })
  if (compiled.ok) compiled.program.run({ path, paths: [path], map: { a: path } }, noMetadata, false)
  await setImmediate() // accesses after the call
  return asked.has(path)
}

const answers: boolean[] = []
for (const program of JSON.parse(readFileSync(0, 'utf8')) as OpeningProgram[]) answers.push(await opens(program))
process.stdout.write(JSON.stringify(answers))
