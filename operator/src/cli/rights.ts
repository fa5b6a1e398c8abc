// Determines the namespaces in which an operator with only Roles can work, before it starts. It waits, without being ready, for its rights
// in its own namespace and in those of node agents. It skips a tenant's namespace that denies access, logs it, and retries.

import { errorText } from '@penstock/agent/errors'
import { pause } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import type { OperatorPart, OperatorSettings } from '../context.ts'
import type { KubeClient } from '../kube/client.ts'
import { grantsOf, type MissingRight, missingRights, type NeededRule } from '../kube/rights.ts'
import { operatorName } from '../workloads/installation-names.ts'
import { agentNamespaceRules, namespaceItself, ownNamespaceRules, watchedNamespaceRules } from '../workloads/rights.ts'

const againMs = 10_000
const lookAgainMs = 60_000

export class Rights {
  readonly #kube: KubeClient
  readonly #settings: OperatorSettings
  readonly #logger: Logger
  /** The last report about a namespace; equal reports are not repeated. */
  readonly #reported = new Map<string, string>()
  /** Tenants' namespaces in which the operator lacks rights. */
  leftOut: readonly string[] = []

  constructor(kube: KubeClient, settings: OperatorSettings, logger: Logger) {
    this.#kube = kube.as('rights')
    this.#settings = settings
    this.#logger = logger
  }

  /** The accessible watched namespaces; undefined while the operator cannot work at all. */
  async usable(signal: AbortSignal): Promise<readonly string[] | undefined> {
    const { namespace, agentNamespaces, watchNamespaces = [] } = this.#settings
    const essential = new Set([namespace, ...agentNamespaces])
    const lacking = new Set<string>()
    for (const one of new Set([...essential, ...watchNamespaces])) {
      const missing = await missingRights(this.#kube, one, this.#neededIn(one), signal)
      if (missing.length > 0) lacking.add(one)
      this.#say(one, missing, essential.has(one))
    }
    if ([...essential].some((one) => lacking.has(one))) return undefined
    this.leftOut = watchNamespaces.filter((one) => lacking.has(one))
    return watchNamespaces.filter((one) => !lacking.has(one))
  }

  /** Waits until the operator can work. */
  async granted(signal: AbortSignal): Promise<readonly string[]> {
    for (;;) {
      try {
        const usable = await this.usable(signal)
        if (usable !== undefined) return usable
      } catch (error) {
        signal.throwIfAborted()
        this.#logger.warn({ error: errorText(error) }, "Could not look up the operator's rights; trying again.")
      }
      await pause(againMs, signal)
      signal.throwIfAborted()
    }
  }

  /** Exits gracefully when a skipped namespace grants access: the next process includes it. */
  part(end: () => void): OperatorPart {
    return {
      name: 'rights',
      leaderOnly: false,
      start: async ({ signal: ending }) => {
        const stop = new AbortController()
        const signal = AbortSignal.any([ending, stop.signal])
        const before = new Set(this.leftOut)
        const running = (async () => {
          while (!signal.aborted) {
            await pause(lookAgainMs, signal)
            if (signal.aborted) return
            const usable = (await this.usable(signal).catch(() => undefined)) ?? [] // checked again in a minute
            const opened = usable.filter((one) => before.has(one))
            if (opened.length === 0) continue
            this.#logger.info(
              { namespaces: opened },
              'Namespaces have granted access; the operator restarts with them.',
            )
            end()
            return
          }
        })()
        return {
          async [Symbol.asyncDispose]() {
            stop.abort()
            await running
          },
        }
      },
    }
  }

  #neededIn(namespace: string): readonly NeededRule[] {
    const { namespace: own, agentNamespaces, secretsMode } = this.#settings
    const holdsAgents = agentNamespaces.includes(namespace)
    const watched =
      secretsMode === 'Namespaced' && !holdsAgents && namespace !== own
        ? watchedNamespaceRules.map((rule) => ({
            ...rule,
            resources: rule.resources?.filter((name) => name !== 'secrets') ?? [],
          }))
        : watchedNamespaceRules
    return [
      ...watched,
      namespaceItself(namespace),
      ...(holdsAgents || namespace === own ? agentNamespaceRules : []),
      ...(namespace === own ? ownNamespaceRules : []),
    ]
  }

  #say(namespace: string, missing: readonly MissingRight[], isEssential: boolean): void {
    const reported = JSON.stringify(missing)
    if ((this.#reported.get(namespace) ?? '[]') === reported) return
    this.#reported.set(namespace, reported)
    if (missing.length === 0) {
      this.#logger.info({ namespace }, "The operator's rights in a namespace are now complete.")
      return
    }
    const facts = {
      namespace,
      missing: missing.map(({ verbs, resource, names }) =>
        [verbs.join(', '), resource, ...(names.length === 0 ? [] : [`(${names.join(', ')})`])].join(' '),
      ),
      help: `Install the chart with rbac.scope=Namespaced and ${namespace} in watch.namespaces${isEssential ? ' or agentNamespaces' : ''}, or run the commands of \`grant\`.`,
      grant: grantsOf(namespace, `${this.#settings.namespace}:${operatorName}`, missing),
    }
    if (isEssential) this.#logger.error(facts, 'Rights are missing in a namespace; the operator waits for them.')
    else this.#logger.error(facts, 'Rights are missing in a namespace; skipping it until they are granted.')
  }
}
