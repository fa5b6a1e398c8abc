// The thread in which Pipelines are compiled. It gets a job at a time; its owner ends it when one takes too long.

import { parentPort } from 'node:worker_threads'
import { type CompileJob, type CompileResult, compileJob } from './job.ts'

export type WorkerMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'compiled' }
  | { readonly type: 'done'; readonly result: CompileResult }
  | { readonly type: 'failed'; readonly error: string }

const say = (message: WorkerMessage) => parentPort?.postMessage(message)

parentPort?.on('message', (job: CompileJob) => {
  compileJob(job, () => say({ type: 'compiled' })).then(
    (result) => say({ type: 'done', result }),
    (error: unknown) =>
      say({ type: 'failed', error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})

say({ type: 'ready' })
