// TenantPolicy: which features authors of namespaced kinds may use, and how much.

import { defaultBudget, type LimitName, limits, maxBudget } from '@penstock/agent/schema'
import { conditions } from './conditions.ts'
import type { CustomResource } from './object.ts'
import { bytesText } from './quantity.ts'
import {
  bool,
  byDefault,
  duration,
  integer,
  list,
  object,
  oneOf,
  required,
  specQuantity,
  text,
  type ValueOf,
} from './schema.ts'
import { labelSelector } from './selector.ts'

const types = (description: string) => list(text('A type, or `*`.', { maxLength: 63 }), description, { maxItems: 64 })

const countsAsZero = 'Until it is corrected, it counts as 0'
const amount = (description: string) =>
  specQuantity(description, `${countsAsZero}: the operator rejects new versions of Pipelines that set this amount.`)

/** Each limit of a declaration has a field. */
const limitFields = Object.fromEntries(
  Object.entries(limits)
    .filter(([, { field }]) => field === undefined)
    .map(([name, { unit, cap, description }]) => [
      name,
      unit === 'bytes'
        ? byDefault(bytesText(cap), amount(`${description} ${bytesText(cap)} if not set.`))
        : byDefault(cap, integer(`${description} ${cap} if not set.`, { minimum: 1 })),
    ]),
) as { readonly [N in LimitName]: ReturnType<typeof amount> }

/** The default of `gracePeriod`. */
export const policyGracePeriod = '10m'

export const tenantPolicySpec = object(
  {
    namespaceSelector: required(labelSelector('Namespaces to which it applies; all if empty.')),
    allowedSources: types('Types of sources; orchestrator_logs if absent.'),
    allowedSinks: types('Types of sinks; all that do not access the node if absent.'),
    denyOptions: list(
      text('Path of an option, such as `sinks.*.proxy`.', { maxLength: 253 }),
      'Options that are refused.',
      {
        maxItems: 64,
      },
    ),
    egress: object(
      {
        denyCIDRs: list(
          text('A network.', { maxLength: 64 }),
          'Networks that endpoints must not be in, in addition to those that are always refused.',
          {
            maxItems: 256,
          },
        ),
        allowHosts: list(
          text('A host, or `*.example.com`.', { maxLength: 253 }),
          'Hosts that endpoints may name; all if empty.',
          {
            maxItems: 256,
          },
        ),
      },
      'Where data may go.',
    ),
    implicitCredentials: byDefault('Deny', oneOf(['Deny', 'Allow'], "Whether sinks may use the agent's own identity.")),
    maxReadBytes: byDefault(
      bytesText(limits.readBytes.cap),
      amount(`${limits.readBytes.description} ${bytesText(limits.readBytes.cap)} if not set.`),
    ),
    limits: object(
      limitFields,
      'How much memory or disk space one component may use; each limit has a default. If an option is absent and its default exceeds the limit, the limit applies.',
    ),
    programBudget: object(
      {
        turnsPerEvent: byDefault(
          defaultBudget.turns,
          integer(
            `Number of loop iterations, and work of the same duration. ${defaultBudget.turns} if not set, at most ${maxBudget.turns}.`,
            { minimum: 1, maximum: maxBudget.turns },
          ),
        ),
        bytesPerEvent: byDefault(
          bytesText(defaultBudget.bytes),
          specQuantity(
            `Bytes of the values that a program creates. ${bytesText(defaultBudget.bytes)} if not set; at most ${bytesText(maxBudget.bytes)}. 0: no values in loops.`,
            `${countsAsZero}: programs of Pipelines fail for events if they create values in loops.`,
          ),
        ),
      },
      'Budget of a program for one event.',
    ),
    quota: object(
      {
        pipelines: integer('Pipelines of a namespace. 0: none.'),
        components: integer('Components of a namespace. 0: none.'),
        diskBuffer: specQuantity(
          'Bytes of disk buffers of a namespace. 0: none.',
          `${countsAsZero}: the operator rejects new versions of Pipelines with disk buffers.`,
        ),
        bytesPerSecond: specQuantity(
          'Bytes per second that all Pipelines of a namespace together read on one agent. The remaining lines wait in their files. 0: nothing is read.',
          `${countsAsZero}: the Pipelines of the namespace read nothing.`,
        ),
        cpuShare: integer('Share of the CPU, against others.', { minimum: 1, maximum: 1000 }),
      },
      'How much.',
    ),
    gracePeriod: byDefault(
      policyGracePeriod,
      duration(
        'How long a running Pipeline continues after the policy starts to forbid it. `0s`: it stops immediately.',
      ),
    ),
    tests: object({ required: byDefault(false, bool('Whether Pipelines with transforms must have tests.')) }, 'Tests.'),
  },
  'Permissions and limits of the policy.',
)

export const tenantPolicyStatus = object(
  {
    observedGeneration: integer('The newest generation that the operator has processed.'),
    namespaces: object(
      {
        matching: integer('Namespaces that it selects.'),
        effective: integer('Number of these where no other policy is more specific.'),
      },
      'Namespaces.',
    ),
    conditions,
  },
  'Observed state of the policy.',
)

export type TenantPolicySpec = ValueOf<typeof tenantPolicySpec>
export type TenantPolicyStatus = ValueOf<typeof tenantPolicyStatus>
export type TenantPolicy = CustomResource<TenantPolicySpec, TenantPolicyStatus>
