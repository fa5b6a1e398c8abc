// The symmetric ciphers of `encrypt` and `decrypt`, by their names in programs, and the key-based mapping of addresses.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as Aes from '@noble/ciphers/aes.js'
import type * as Chacha from '@noble/ciphers/chacha.js'
import type * as Salsa from '@noble/ciphers/salsa.js'
import { ipText, parseIp } from '../formats/ip.ts'

// Loaded when one of their ciphers is first used, because most agents never encrypt.
const require = createRequire(import.meta.url)
const aes = () => require('@noble/ciphers/aes.js') as typeof Aes
const chacha = () => require('@noble/ciphers/chacha.js') as typeof Chacha
const salsa = () => require('@noble/ciphers/salsa.js') as typeof Salsa

interface Cipher {
  readonly keyBytes: number
  readonly ivBytes: number
  encrypt(data: Buffer, key: Buffer, iv: Buffer): Uint8Array
  decrypt(data: Buffer, key: Buffer, iv: Buffer): Uint8Array | undefined
}

const blockBytes = 16
const ciphers = new Map<string, Cipher>()

for (const bits of [128, 192, 256]) {
  const keyBytes = bits / 8
  for (const mode of ['cfb', 'ofb']) {
    ciphers.set(`AES-${bits}-${mode.toUpperCase()}`, ofNode(`aes-${bits}-${mode}`, keyBytes))
  }
  const little = counting(bits, true)
  ciphers.set(`AES-${bits}-CTR`, little)
  ciphers.set(`AES-${bits}-CTR-LE`, little)
  ciphers.set(`AES-${bits}-CTR-BE`, counting(bits, false))
  for (const padding of ['PKCS7', 'ANSIX923', 'ISO7816', 'ISO10126'] as const) {
    ciphers.set(`AES-${bits}-CBC-${padding}`, chaining(bits, padding))
  }
}
ciphers.set(
  'CHACHA20-POLY1305',
  authenticated(12, 32, (key, iv) => chacha().chacha20poly1305(key, iv)),
)
ciphers.set(
  'XCHACHA20-POLY1305',
  authenticated(24, 32, (key, iv) => chacha().xchacha20poly1305(key, iv)),
)
ciphers.set(
  'XSALSA20-POLY1305',
  authenticated(24, 32, (key, iv) => salsa().xsalsa20poly1305(key, iv)),
)
ciphers.set(
  'AES-128-SIV',
  authenticated(16, 32, (key, iv) => aes().aessiv(key, new Uint8Array(0), iv)),
)
ciphers.set(
  'AES-256-SIV',
  authenticated(16, 64, (key, iv) => aes().aessiv(key, new Uint8Array(0), iv)),
)

/** The problem of an encryption cipher's name. */
export function encryptionProblem(name: string): string | undefined {
  return ciphers.has(name.toUpperCase()) ? undefined : `Invalid algorithm: ${name}`
}

export function encryptBytes(name: string, data: Buffer, key: Buffer, iv: Buffer): Buffer | string {
  const cipher = fitting(name, key, iv)
  return typeof cipher === 'string' ? cipher : Buffer.from(cipher.encrypt(data, key, iv))
}

export function decryptBytes(name: string, data: Buffer, key: Buffer, iv: Buffer): Buffer | string {
  const cipher = fitting(name, key, iv)
  if (typeof cipher === 'string') return cipher
  try {
    const result = cipher.decrypt(data, key, iv)
    if (result !== undefined) return Buffer.from(result)
  } catch {
    // The data was changed, or the key is wrong; the error below says so.
  }
  return 'Invalid input'
}

function fitting(name: string, key: Buffer, iv: Buffer): Cipher | string {
  const cipher = ciphers.get(name.toUpperCase())
  if (cipher === undefined) return `Invalid algorithm: ${name.toUpperCase()}`
  if (key.length !== cipher.keyBytes)
    return `Invalid key size. Expected ${cipher.keyBytes} bytes. Found ${key.length} bytes`
  if (iv.length !== cipher.ivBytes) return `Invalid iv size. Expected ${cipher.ivBytes} bytes. Found ${iv.length} bytes`
  return cipher
}

function ofNode(name: string, keyBytes: number): Cipher {
  return {
    keyBytes,
    ivBytes: blockBytes,
    encrypt: (data, key, iv) => createCipheriv(name, key, iv).update(data),
    decrypt: (data, key, iv) => createDecipheriv(name, key, iv).update(data),
  }
}

/** Counter mode with a 64-bit counter: in the last bytes in big-endian order, or in the first bytes in little-endian order. */
function counting(bits: number, little: boolean): Cipher {
  const run = (data: Buffer, key: Buffer, iv: Buffer): Buffer => {
    const blocks = Buffer.alloc(Math.ceil(data.length / blockBytes) * blockBytes)
    const start = little ? iv.readBigUInt64LE(0) : iv.readBigUInt64BE(8)
    for (let at = 0, count = 0n; at < blocks.length; at += blockBytes, count++) {
      iv.copy(blocks, at)
      const counter = BigInt.asUintN(64, start + count)
      if (little) blocks.writeBigUInt64LE(counter, at)
      else blocks.writeBigUInt64BE(counter, at + 8)
    }
    const stream = createCipheriv(`aes-${bits}-ecb`, key, null).setAutoPadding(false).update(blocks)
    const result = Buffer.alloc(data.length)
    for (let at = 0; at < data.length; at++) result[at] = (data[at] as number) ^ (stream[at] as number)
    return result
  }
  return { keyBytes: bits / 8, ivBytes: blockBytes, encrypt: run, decrypt: run }
}

type Padding = 'PKCS7' | 'ANSIX923' | 'ISO7816' | 'ISO10126'

function chaining(bits: number, padding: Padding): Cipher {
  const name = `aes-${bits}-cbc`
  return {
    keyBytes: bits / 8,
    ivBytes: blockBytes,
    encrypt: (data, key, iv) => createCipheriv(name, key, iv).setAutoPadding(false).update(padded(data, padding)),
    decrypt: (data, key, iv) =>
      data.length === 0 || data.length % blockBytes !== 0
        ? undefined
        : unpadded(createDecipheriv(name, key, iv).setAutoPadding(false).update(data), padding),
  }
}

function padded(data: Buffer, padding: Padding): Buffer {
  const count = blockBytes - (data.length % blockBytes)
  const tail =
    padding === 'PKCS7' ? Buffer.alloc(count, count) : padding === 'ISO10126' ? randomBytes(count) : Buffer.alloc(count)
  if (padding === 'ISO7816') tail[0] = 0x80
  else tail[count - 1] = count
  return Buffer.concat([data, tail])
}

function unpadded(data: Buffer, padding: Padding): Buffer | undefined {
  if (padding === 'ISO7816') {
    let end = data.length - 1
    while (end >= 0 && data[end] === 0) end--
    return data[end] === 0x80 && data.length - end <= blockBytes ? data.subarray(0, end) : undefined
  }
  const count = data[data.length - 1] as number
  if (count < 1 || count > blockBytes) return undefined
  const tail = data.subarray(data.length - count, data.length - 1)
  if (padding === 'PKCS7' && !tail.every((byte) => byte === count)) return undefined
  if (padding === 'ANSIX923' && !tail.every((byte) => byte === 0)) return undefined
  return data.subarray(0, data.length - count)
}

interface Sealed {
  encrypt(data: Uint8Array): Uint8Array
  decrypt(data: Uint8Array): Uint8Array
}

function authenticated(ivBytes: number, keyBytes: number, open: (key: Uint8Array, iv: Uint8Array) => Sealed): Cipher {
  const bytes = (buffer: Buffer): Uint8Array => Uint8Array.from(buffer)
  return {
    keyBytes,
    ivBytes,
    encrypt: (data, key, iv) => open(bytes(key), bytes(iv)).encrypt(bytes(data)),
    decrypt: (data, key, iv) => open(bytes(key), bytes(iv)).decrypt(bytes(data)),
  }
}

export type Address = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string }

/** Maps an address to another one (`forward`) or back. */
export function encryptAddress(text: string, key: Buffer, mode: string, forward: boolean): Address {
  const address = parseIp(text)
  if (address === undefined) return { ok: false, problem: 'unable to parse IP address: invalid IP address syntax' }
  const wanted = mode === 'aes128' ? 16 : mode === 'pfx' ? 32 : undefined
  if (wanted === undefined) return { ok: false, problem: `Invalid mode '${mode}'. Must be 'aes128' or 'pfx'` }
  if (key.length !== wanted) {
    const family = address.length === 4 ? 'IPv4' : 'IPv6'
    return { ok: false, problem: `${mode} mode requires a ${wanted}-byte key for ${family}` }
  }
  const bytes = Buffer.alloc(16)
  if (address.length === 4) {
    bytes.fill(0xff, 10, 12)
    bytes.set(address, 12)
  } else {
    bytes.set(address)
  }
  if (mode === 'aes128') {
    const name = 'aes-128-ecb'
    const cipher = forward ? createCipheriv(name, key, null) : createDecipheriv(name, key, null)
    return { ok: true, text: shownIp(cipher.setAutoPadding(false).update(bytes)) }
  }
  return { ok: true, text: shownIp(prefixPreserving(bytes, key, address.length === 4 ? 96 : 0, forward)) }
}

function shownIp(bytes: Buffer): string {
  const mapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff
  return ipText(Uint8Array.from(mapped ? bytes.subarray(12) : bytes))
}

/** Each bit is flipped or kept depending on two keys and the preceding bits. */
function prefixPreserving(bytes: Buffer, key: Buffer, start: number, forward: boolean): Buffer {
  const left = createCipheriv('aes-128-ecb', key.subarray(0, 16), null).setAutoPadding(false)
  const right = createCipheriv('aes-128-ecb', key.subarray(16), null).setAutoPadding(false)
  const result = Buffer.alloc(16)
  const prefix = Buffer.alloc(16)
  if (start === 0) {
    prefix[15] = 1
  } else {
    bytes.copy(result, 0, 0, 12)
    prefix[3] = 1
    prefix.fill(0xff, 14)
  }
  for (let position = start; position < 128; position++) {
    const shift = 7 - (position & 7)
    const mask = ((left.update(prefix)[15] as number) ^ (right.update(prefix)[15] as number)) & 1
    const given = ((bytes[position >> 3] as number) >> shift) & 1
    const made = given ^ mask
    result[position >> 3] = (result[position >> 3] as number) | (made << shift)
    // The preceding bits are those of the plain address.
    let carry = forward ? given : made
    for (let index = 15; index >= 0; index--) {
      const byte = prefix[index] as number
      prefix[index] = ((byte << 1) | carry) & 0xff
      carry = byte >> 7
    }
  }
  return result
}
