// Sources and Sinks shared by Pipelines: their own mistakes, independent of their users, and the list of their users.

import { canonicalJson } from '@penstock/agent/bundle'
import type { ResourceKind } from '../../api/kinds.ts'
import type { SourceResource } from '../../api/source.ts'
import { sharedVerdict, type Verdict } from '../../compile/job.ts'
import type { CompilePool } from '../../compile/pool.ts'
import { resourceOf } from '../../compile/resources.ts'
import { sharedPipeline } from '../../compile/shared.ts'
import type { OperatorContext } from '../../context.ts'
import { type Gatherer, plain, secretsOf } from '../../policy/gather.ts'

export class SharedObjects {
  readonly #context: OperatorContext
  readonly #gathered: Gatherer
  readonly #pool: CompilePool
  /** Results by key, and the inputs they were computed from. */
  readonly #known = new Map<string, { readonly mark: string; readonly verdict: Verdict }>()

  constructor(context: OperatorContext, gathered: Gatherer, pool: CompilePool) {
    this.#context = context
    this.#gathered = gathered
    this.#pool = pool
  }

  forget(key: string): void {
    this.#known.delete(key)
  }

  /** Writes the status of a shared object. */
  async report(kind: ResourceKind, key: string, object: SourceResource): Promise<void> {
    const users = [...this.#gathered.pipelines.values()].flatMap((cache) => cache.find('reference', key))
    const namespaces = new Set(users.flatMap((user) => user.metadata.namespace ?? []))
    const resolved = await this.#references(object)
    const accepted = await this.#verdict(key, object)
    this.#context.status.report(kind, object, 'compile', {
      generation: object.metadata.generation ?? 0,
      findings: [
        { type: 'Accepted', ...accepted },
        { type: 'ResolvedRefs', ...resolved },
      ],
      fields: { usedBy: { pipelines: users.length, namespaces: namespaces.size } },
    })
  }

  /** Its own mistakes, independent of its users; computed once for each version of the object and of the policy. */
  async #verdict(key: string, object: SourceResource): Promise<Verdict> {
    const alone = plain(object)
    const job = await this.#gathered.jobOf(sharedPipeline(resourceOf(alone)), this.#context.signal)
    const mark = canonicalJson([object.metadata.uid, object.metadata.generation, job.policy])
    const known = this.#known.get(key)
    if (known?.mark === mark) return known.verdict
    const verdict = sharedVerdict(await this.#pool.compile({ ...job, resources: [alone] }), alone)
    this.#known.set(key, { mark, verdict })
    return verdict
  }

  async #references(object: SourceResource): Promise<Verdict> {
    for (const name of secretsOf(object)) {
      if ((await this.#gathered.keysIn(name, this.#context.signal)) !== null) continue
      const [kind, where = ''] = name.split(' ') as [string, string]
      const [namespace, own] = where.split('/')
      return {
        status: 'False',
        reason: 'SecretNotFound',
        message: `${kind} "${own}" does not exist in namespace "${namespace}"`,
      }
    }
    return { status: 'True', reason: 'Resolved', message: '' }
  }
}
