// The process that compiles Pipelines: it receives one job at a time, may only read the program's own files, and ends when it
// exceeds its limits. It shares nothing with the operator: no memory, environment or connection.

import { type CompileJob, type CompileResult, compileJob } from './job.ts'
import { limitOwnProcess } from './own-limits.ts'

export type WorkerMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'compiled' }
  | { readonly type: 'done'; readonly result: CompileResult }
  | { readonly type: 'failed'; readonly name: string; readonly error: string }

const say = (message: WorkerMessage) => process.send?.(message)

process.on('disconnect', () => process.exit(0))
process.on('message', (job: CompileJob) => {
  compileJob(job, () => say({ type: 'compiled' })).then(
    (result) => say({ type: 'done', result }),
    (error: unknown) => {
      const { name, stack } = error instanceof Error ? error : new Error(String(error))
      say({ type: 'failed', name, error: stack ?? name })
    },
  )
})

limitOwnProcess(Number(process.argv[2]) * 1024 * 1024)
say({ type: 'ready' })
