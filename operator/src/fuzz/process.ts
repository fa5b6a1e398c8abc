// Runs the cases of a range of seeds, and reports to its parent process. The process does nothing else, so all opened files and its
// peak memory use belong to the cases.

import type { Report } from './fuzz-tenants.ts'
import { Harness } from './run.ts'

const [from = 0, to = 0, step = 1] = process.argv.slice(2, 5).map(Number)
const continues = process.argv[5] === 'true'
const report = (message: Report | { readonly at: number }) => process.send?.(message)

using harness = await Harness.open()
for (let seed = from; seed < to; seed += step) {
  report({ at: seed })
  const found = await harness.run(seed)
  if (found === undefined) continue
  report({ found })
  if (!continues) break
}
report({ tally: harness.tally })
process.disconnect?.()
