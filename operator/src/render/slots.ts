// Assigns keys to Secrets. Existing keys keep their Secret, so that a change rewrites as few Secrets as possible; new keys
// are put where there is space. Pure.

export interface Item {
  readonly key: string
  readonly data: Buffer
}

/** Space of a Secret for keys and values; the API server refuses more than 1 MiB, and metadata needs some space. */
export const slotBytes = 1_000_000

export interface Placement {
  /** The desired content of each Secret, by slot. */
  readonly slots: readonly ReadonlyMap<string, Buffer>[]
  /** The items that found no room. */
  readonly left: readonly string[]
}

/**
 * @param current the present places of keys @param items in order of importance @param reserved bytes of the first slot
 * for other content
 */
export function place(
  count: number,
  current: ReadonlyMap<string, number>,
  items: readonly Item[],
  reserved = 0,
): Placement {
  const slots = Array.from({ length: count }, () => new Map<string, Buffer>())
  const room = slots.map((_, slot) => slotBytes - (slot === 0 ? reserved : 0))
  const left: string[] = []
  const put = (slot: number, item: Item): boolean => {
    const size = item.key.length + item.data.length
    if ((room[slot] as number) < size) return false
    slots[slot]?.set(item.key, item.data)
    room[slot] = (room[slot] as number) - size
    return true
  }
  const moving: Item[] = []
  for (const item of items) {
    const slot = current.get(item.key)
    if (slot === undefined || slot >= count || !put(slot, item)) moving.push(item)
  }
  for (const item of moving) {
    const slot = slots.findIndex((_, index) => put(index, item))
    if (slot < 0) left.push(item.key)
  }
  return { slots, left }
}
