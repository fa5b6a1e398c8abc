// Simulates a compiler that misbehaves. The name of the Pipeline selects the failure.

import type { CompileJob } from '../compile/job.ts'
import { limitOwnProcess } from '../compile/own-limits.ts'
import type { WorkerMessage } from '../compile/worker.ts'

const say = (message: WorkerMessage) => process.send?.(message)

const attacks: Readonly<Record<string, () => void>> = {
  /** Allocates memory outside the heap, which Node's flags do not limit. A failed allocation is retried. */
  buffers() {
    const kept: Uint8Array[] = []
    for (;;) {
      try {
        kept.push(new Uint8Array(4 * 1024 * 1024).fill(1))
      } catch {
        kept.push(new Uint8Array(1024).fill(1))
      }
    }
  },
  heap() {
    const kept: unknown[] = []
    for (;;) kept.push({ kept: [kept.length] })
  },
  loop() {
    for (;;);
  },
  abort: () => process.abort(),
  exit: () => process.exit(3),
  throw() {
    throw new TypeError('secret content')
  },
}

process.on('disconnect', () => process.exit(0))
process.on('message', ({ pipeline: { metadata } }: CompileJob) => {
  try {
    attacks[metadata.name]?.()
  } catch (error) {
    say({ type: 'failed', name: (error as Error).name, error: String(error) })
    return
  }
  const verdict = { status: 'True', reason: 'Valid', message: metadata.name } as const
  const result = { artifact: undefined, accepted: verdict, resolved: verdict, tests: undefined }
  say({ type: 'done', result: { ...result, warnings: [], problems: [], diskBufferBytes: 0 } })
})
limitOwnProcess(Number(process.argv[2]) * 1024 * 1024)
say({ type: 'ready' })
