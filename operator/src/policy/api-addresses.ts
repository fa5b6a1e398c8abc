// Addresses of the API server, which tenants must not connect to (T7): the names that the operator itself uses, and the endpoints behind
// the Service, which change with the control plane. Agents receive them in the responses to their heartbeats, so bundles do not change.

import { errorText } from '@penstock/agent/errors'
import { pause } from '@penstock/agent/program'
import type { KubeObject } from '../api/object.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { endpointSliceType } from '../kube/resource-types.ts'

const periodMs = 30_000

type EndpointSlice = KubeObject & {
  readonly endpoints?: readonly { readonly addresses?: readonly string[] }[] | null
}

export class ApiAddresses {
  readonly #fixed: readonly string[]
  #endpoints: readonly string[] = []
  /** The failure that was logged last. */
  #failure: string | undefined

  constructor(fixed: readonly string[]) {
    this.#fixed = fixed.filter((host) => host !== '')
  }

  current(): readonly string[] {
    return [...new Set([...this.#fixed, ...this.#endpoints])]
  }

  /** Reads the endpoints once. If reading fails, the last known ones remain. */
  async read({ kube, logger, signal }: Pick<OperatorContext, 'kube' | 'logger' | 'signal'>): Promise<void> {
    try {
      const slice = await kube.get<EndpointSlice>(endpointSliceType, 'default', 'kubernetes', { signal })
      const found = (slice?.endpoints ?? []).flatMap(({ addresses = [] }) => addresses)
      if (found.length > 0) this.#endpoints = found.toSorted()
      this.#failure = undefined
    } catch (error) {
      const failure = errorText(error)
      if (signal.aborted || failure === this.#failure) return
      this.#failure = failure
      logger.warn(
        { error: failure },
        'Cannot read the endpoints of the API server; tenants still cannot connect to its last known addresses.',
      )
    }
  }
}

/** Keeps the addresses up to date on every replica, because each one answers reviews and heartbeats. */
export function apiAddressesPart(addresses: ApiAddresses): OperatorPart {
  return {
    name: 'api-addresses',
    leaderOnly: false,
    async start(context) {
      const reader = { kube: context.kube.as('api-addresses'), logger: context.logger, signal: context.signal }
      await addresses.read(reader)
      const follow = async (): Promise<void> => {
        while (!context.signal.aborted) {
          await pause(periodMs, context.signal)
          if (!context.signal.aborted) await addresses.read(reader)
        }
      }
      const following = follow()
      return {
        async [Symbol.asyncDispose]() {
          await following
        },
      }
    },
  }
}
