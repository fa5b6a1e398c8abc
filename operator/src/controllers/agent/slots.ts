// Plans the content of an Agent's Secrets: secret values, shards and the manifest. Each key stays in its slot if possible. Pure.

import type { Delivered, KnownRevision } from '../../fleet/state.ts'
import { isGood } from '../../fleet/undo.ts'
import type { Fragment } from '../../render/fragment.ts'
import { type Digests, digestFile, renderManifest } from '../../render/manifest.ts'
import { place, slotBytes } from '../../render/slots.ts'
import { configSlots, secretSlots } from '../../workloads/names.ts'
import type { AgentSecrets, SecretContents } from '../agent-secrets.ts'
import { valueKeys, wantedIn } from '../revisions.ts'

/** Space in the first Secret for Kubernetes metadata and the rollout record, in addition to the manifest. */
const metadataBytes = 4096

const manifestKey = 'manifest.json'

export interface SeenSecrets {
  /** Key of the Agent, for messages. */
  readonly agent: string
  /** Revisions that pods have reported. */
  readonly running: ReadonlySet<string>
  /** Whether every pod has reported; otherwise nothing is removed that a pod may run. */
  readonly allKnown: boolean
  /** The current secret value of a key; undefined if it was not read in this pass. */
  value(key: string): Buffer | undefined
  /** The current content of the Secrets. */
  readonly values: AgentSecrets['values']
  readonly config: AgentSecrets['config']
  readonly manifestExtras: Parameters<typeof renderManifest>[3]
}

/** Whether these revisions and their values fit into the Secrets, with space for one more shard that agents may still run. */
export function fitTogether(revisions: readonly KnownRevision[], value: (key: string) => Buffer | undefined): boolean {
  const shards = new Set(revisions.flatMap((revision) => revision.shards.map(({ key }) => key)))
  if (shards.size >= configSlots) return false
  const keys = new Set(revisions.flatMap(({ fragments }) => [...fragments.values()].flatMap(keysOf)))
  let bytes = 0
  for (const key of keys) bytes += key.length + (value(key)?.length ?? 0)
  // The slots cannot be filled to the last byte.
  return bytes <= 0.8 * secretSlots * slotBytes
}

const keysOf = ({ secretRefs }: Fragment) => secretRefs.map(({ key }) => key)

export interface SecretsPlan {
  /** Revisions that stay available. */
  readonly kept: ReadonlySet<string>
  readonly values: readonly SecretContents[]
  readonly shards: readonly SecretContents[]
  /** The values that current revisions refer to. */
  readonly named: ReadonlyMap<string, Buffer>
  readonly digests: Digests
}

export function planSecrets(
  delivered: Pick<Delivered, 'stable' | 'candidate' | 'later' | 'record' | 'revisions'>,
  seen: SeenSecrets,
): SecretsPlan {
  const { stable, candidate, later, record, revisions } = delivered
  const { values: oldValues, config: oldConfig, allKnown } = seen
  const wanted = wantedIn(delivered)
  const history = record.history.filter(isGood).map(({ revision }) => revision)
  const kept = new Set([...wanted, ...seen.running, ...history])

  // All values that available revisions refer to; old ones are unchanged.
  const values = picked(valueKeys(delivered, [...kept]), (key) => seen.value(key) ?? oldValues.data(key))
  const named = picked(valueKeys(delivered, wanted), (key) => values.get(key))
  // A pod that has not reported may need any of the old values.
  if (!allKnown) keepOld(values, oldValues)
  const digests = digestFile(named)
  const manifest = renderManifest(stable, candidate, digests, { ...seen.manifestExtras, later })

  const shards = new Map<string, Buffer>([[digests.file.key, digests.file.data]])
  for (const rev of kept) for (const { key, data } of revisions.get(rev)?.shards ?? []) shards.set(key, data)
  if (!allKnown) keepOld(shards, oldConfig, manifestKey)

  const needed = new Set([
    ...wanted.flatMap((rev) => revisions.get(rev)?.shards.map((shard) => shard.key) ?? []),
    digests.file.key,
    ...named.keys(),
  ])
  const placedValues = fitting(secretSlots, oldValues.slots, values, needed)
  const placedShards = fitting(configSlots, oldConfig.slots, shards, needed, manifest.length + metadataBytes)
  const missing = [...placedValues.left, ...placedShards.left].filter((key) => needed.has(key))
  if (missing.length > 0) {
    throw new Error(
      `The Secrets of Agent ${seen.agent} have no space for ${missing.length} keys that its revisions need.`,
    )
  }
  return {
    kept,
    values: placedValues.slots,
    shards: placedShards.slots.map((slot, index) => (index === 0 ? new Map([...slot, [manifestKey, manifest]]) : slot)),
    named,
    digests,
  }
}

function keepOld(contents: Map<string, Buffer>, old: AgentSecrets['values'], except?: string): void {
  for (const key of old.slots.keys())
    if (key !== except) contents.set(key, contents.get(key) ?? (old.data(key) as Buffer))
}

/** All keys; or only the needed ones if not all fit, because the desired revision takes precedence over earlier ones. */
function fitting(
  count: number,
  current: ReadonlyMap<string, number>,
  contents: ReadonlyMap<string, Buffer>,
  needed: ReadonlySet<string>,
  reservedBytes = 0,
) {
  const items = [...contents].map(([key, data]) => ({ key, data }))
  const placed = place(count, current, items, reservedBytes)
  if (!placed.left.some((key) => needed.has(key))) return placed
  return place(
    count,
    current,
    items.filter(({ key }) => needed.has(key)),
    reservedBytes,
  )
}

/** The values of these keys, as far as they exist. */
export function picked(keys: Iterable<string>, find: (key: string) => Buffer | undefined): Map<string, Buffer> {
  const values = new Map<string, Buffer>()
  for (const key of keys) {
    const value = find(key)
    if (value !== undefined) values.set(key, value)
  }
  return values
}
