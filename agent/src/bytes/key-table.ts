// The member names of one source's lines, which the kernel looks up by their bytes. They are kept here while the kernel works for other
// sources, so sources cannot use up each other's room.

import { compareKeys } from '../event/value.ts'
import type { Kernel } from './kernel.ts'

/** Events are numbered, and a name keeps the number of the last event with it. Before the numbers overflow, all names are reset. */
const lastStamp = 2 ** 31

/** Offsets within the kernel's table entry; see `kernel.as.ts`. */
const rankAt = 2
const stampAt = 4
const nameAt = 18

/** The source that names are counted for. */
export interface NameOwner {
  names: number
}

export class KeyTable {
  readonly names: string[] = []
  readonly #keys = new Map<string, number>()
  /** Changes whenever the order of the names changes. */
  version = 0
  #stamp = 0
  #lacksNames = false
  #entries = new Uint8Array(0)
  #slots: Uint8Array | undefined

  /** Loads the names into the kernel, and first saves those of another source. */
  enter(kernel: Kernel): void {
    const { content, memory } = kernel
    if (content.keys === this) {
      if (kernel.current('stamp') >>> 0 > lastStamp) this.#restartStamps(kernel)
      return
    }
    if (content.keys instanceof KeyTable) content.keys.leave(kernel)
    const keys = kernel.at('keys')
    const slots = kernel.at('slots')
    memory.set(this.#entries, keys)
    if (this.#slots === undefined) memory.fill(0, slots, slots + 2 * kernel.at('hashSlots'))
    else memory.set(this.#slots, slots)
    kernel.call.setKeys(this.names.length, this.#stamp, this.#lacksNames)
    content.keys = this
    content.lines = undefined
    content.plan = undefined
  }

  /**
   * Whether a name of some line may be missing, because there was no room for it: the table was full, or other names had taken all
   * slots of the kernel where the name may be.
   */
  lacksNames(kernel: Kernel): boolean {
    return kernel.content.keys === this ? kernel.lacksNames : this.#lacksNames
  }

  #restartStamps(kernel: Kernel): void {
    const keys = kernel.at('keys')
    const stride = kernel.at('keyStride')
    for (let key = 0; key < this.names.length; key++) kernel.memory.writeUInt32LE(0, keys + key * stride + stampAt)
    kernel.call.setKeys(this.names.length, 0, kernel.lacksNames)
  }

  /** Saves the names, if the kernel has them. */
  leave(kernel: Kernel): void {
    const { content, memory } = kernel
    if (content.keys !== this) return
    const keys = kernel.at('keys')
    const slots = kernel.at('slots')
    const length = this.names.length * kernel.at('keyStride')
    if (this.#entries.length !== length) this.#entries = new Uint8Array(length)
    this.#slots ??= new Uint8Array(2 * kernel.at('hashSlots'))
    this.#entries.set(memory.subarray(keys, keys + length))
    this.#slots.set(memory.subarray(slots, slots + this.#slots.length))
    this.#stamp = kernel.current('stamp')
    this.#lacksNames = kernel.lacksNames
    content.keys = undefined
    content.lines = undefined
    content.plan = undefined
  }

  /**
   * Records names that the kernel has found for a source, and assigns all names their rank in encoding order. The names must be in the
   * kernel.
   */
  learn(kernel: Kernel, owner: NameOwner): void {
    const count = kernel.current('keyCount')
    if (count === this.names.length) return
    owner.names += count - this.names.length
    const { memory } = kernel
    const keys = kernel.at('keys')
    const stride = kernel.at('keyStride')
    for (let key = this.names.length; key < count; key++) {
      const entry = keys + key * stride
      const name = memory.toString('latin1', entry + nameAt, entry + nameAt + memory.readUInt16LE(entry))
      this.names.push(name)
      this.#keys.set(name, key)
    }
    const order = this.names.map((_, key) => key)
    order.sort((left, right) => compareKeys(this.names[left] as string, this.names[right] as string))
    for (const [rank, key] of order.entries()) memory.writeUInt16LE(rank, keys + key * stride + rankAt)
    this.version++
  }

  /** The key of a name; negative if the kernel cannot hold it. The names must be in the kernel. */
  find(kernel: Kernel, name: string, owner: NameOwner): number {
    if (name.length > kernel.at('maxName') || !/^[ !#-[\]-~]*$/.test(name)) return -1
    // The output area is unused at this point.
    kernel.memory.write(`"${name}"`, kernel.at('output'), 'latin1')
    const key = kernel.call.findKey(kernel.at('output'))
    this.learn(kernel, owner)
    return key
  }

  /** The key of a name that a line or plan has already used. */
  known(name: string): number | undefined {
    return this.#keys.get(name)
  }

  /** The rank of a key in encoding order. */
  rank(kernel: Kernel, key: number): number {
    return kernel.memory.readUInt16LE(kernel.at('keys') + key * kernel.at('keyStride') + rankAt)
  }
}
