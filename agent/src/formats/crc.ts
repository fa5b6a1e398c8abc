// Cyclic redundancy checks of the common algorithms, by their parameters: width, polynomial, initial value, whether input
// and output bits are reflected, and the final XOR. Tables are created when an algorithm is first used.
// The package crc is not used: it has 14 algorithms of at most 32 bits, but the language has 112.

interface Algorithm {
  readonly width: number
  readonly polynomial: bigint
  readonly initial: bigint
  readonly reflectIn: boolean
  readonly reflectOut: boolean
  readonly xorOut: bigint
  /** The check value of `123456789`, which a test compares. */
  readonly check: bigint
}

// name width polynomial initial reflect-in reflect-out xor-out check; all numbers except the width are hexadecimal
const parameters = `
CRC_3_GSM 3 3 0 0 0 7 4
CRC_3_ROHC 3 3 7 1 1 0 6
CRC_4_G_704 4 3 0 1 1 0 7
CRC_4_INTERLAKEN 4 3 f 0 0 f b
CRC_5_EPC_C1G2 5 9 9 0 0 0 0
CRC_5_G_704 5 15 0 1 1 0 7
CRC_5_USB 5 5 1f 1 1 1f 19
CRC_6_CDMA2000_A 6 27 3f 0 0 0 d
CRC_6_CDMA2000_B 6 7 3f 0 0 0 3b
CRC_6_DARC 6 19 0 1 1 0 26
CRC_6_GSM 6 2f 0 0 0 3f 13
CRC_6_G_704 6 3 0 1 1 0 6
CRC_7_MMC 7 9 0 0 0 0 75
CRC_7_ROHC 7 4f 7f 1 1 0 53
CRC_7_UMTS 7 45 0 0 0 0 61
CRC_8_AUTOSAR 8 2f ff 0 0 ff df
CRC_8_BLUETOOTH 8 a7 0 1 1 0 26
CRC_8_CDMA2000 8 9b ff 0 0 0 da
CRC_8_DARC 8 39 0 1 1 0 15
CRC_8_DVB_S2 8 d5 0 0 0 0 bc
CRC_8_GSM_A 8 1d 0 0 0 0 37
CRC_8_GSM_B 8 49 0 0 0 ff 94
CRC_8_HITAG 8 1d ff 0 0 0 b4
CRC_8_I_432_1 8 7 0 0 0 55 a1
CRC_8_I_CODE 8 1d fd 0 0 0 7e
CRC_8_LTE 8 9b 0 0 0 0 ea
CRC_8_MAXIM_DOW 8 31 0 1 1 0 a1
CRC_8_MIFARE_MAD 8 1d c7 0 0 0 99
CRC_8_NRSC_5 8 31 ff 0 0 0 f7
CRC_8_OPENSAFETY 8 2f 0 0 0 0 3e
CRC_8_ROHC 8 7 ff 1 1 0 d0
CRC_8_SAE_J1850 8 1d ff 0 0 ff 4b
CRC_8_SMBUS 8 7 0 0 0 0 f4
CRC_8_TECH_3250 8 1d ff 1 1 0 97
CRC_8_WCDMA 8 9b 0 1 1 0 25
CRC_10_ATM 10 233 0 0 0 0 199
CRC_10_CDMA2000 10 3d9 3ff 0 0 0 233
CRC_10_GSM 10 175 0 0 0 3ff 12a
CRC_11_FLEXRAY 11 385 1a 0 0 0 5a3
CRC_11_UMTS 11 307 0 0 0 0 61
CRC_12_CDMA2000 12 f13 fff 0 0 0 d4d
CRC_12_DECT 12 80f 0 0 0 0 f5b
CRC_12_GSM 12 d31 0 0 0 fff b34
CRC_12_UMTS 12 80f 0 0 1 0 daf
CRC_13_BBC 13 1cf5 0 0 0 0 4fa
CRC_14_DARC 14 805 0 1 1 0 82d
CRC_14_GSM 14 202d 0 0 0 3fff 30ae
CRC_15_CAN 15 4599 0 0 0 0 59e
CRC_15_MPT1327 15 6815 0 0 0 1 2566
CRC_16_ARC 16 8005 0 1 1 0 bb3d
CRC_16_CDMA2000 16 c867 ffff 0 0 0 4c06
CRC_16_CMS 16 8005 ffff 0 0 0 aee7
CRC_16_DDS_110 16 8005 800d 0 0 0 9ecf
CRC_16_DECT_R 16 589 0 0 0 1 7e
CRC_16_DECT_X 16 589 0 0 0 0 7f
CRC_16_DNP 16 3d65 0 1 1 ffff ea82
CRC_16_EN_13757 16 3d65 0 0 0 ffff c2b7
CRC_16_GENIBUS 16 1021 ffff 0 0 ffff d64e
CRC_16_GSM 16 1021 0 0 0 ffff ce3c
CRC_16_IBM_3740 16 1021 ffff 0 0 0 29b1
CRC_16_IBM_SDLC 16 1021 ffff 1 1 ffff 906e
CRC_16_ISO_IEC_14443_3_A 16 1021 c6c6 1 1 0 bf05
CRC_16_KERMIT 16 1021 0 1 1 0 2189
CRC_16_LJ1200 16 6f63 0 0 0 0 bdf4
CRC_16_M17 16 5935 ffff 0 0 0 772b
CRC_16_MAXIM_DOW 16 8005 0 1 1 ffff 44c2
CRC_16_MCRF4XX 16 1021 ffff 1 1 0 6f91
CRC_16_MODBUS 16 8005 ffff 1 1 0 4b37
CRC_16_NRSC_5 16 80b ffff 1 1 0 a066
CRC_16_OPENSAFETY_A 16 5935 0 0 0 0 5d38
CRC_16_OPENSAFETY_B 16 755b 0 0 0 0 20fe
CRC_16_PROFIBUS 16 1dcf ffff 0 0 ffff a819
CRC_16_RIELLO 16 1021 b2aa 1 1 0 63d0
CRC_16_SPI_FUJITSU 16 1021 1d0f 0 0 0 e5cc
CRC_16_T10_DIF 16 8bb7 0 0 0 0 d0db
CRC_16_TELEDISK 16 a097 0 0 0 0 fb3
CRC_16_TMS37157 16 1021 89ec 1 1 0 26b1
CRC_16_UMTS 16 8005 0 0 0 0 fee8
CRC_16_USB 16 8005 ffff 1 1 ffff b4c8
CRC_16_XMODEM 16 1021 0 0 0 0 31c3
CRC_17_CAN_FD 17 1685b 0 0 0 0 4f03
CRC_21_CAN_FD 21 102899 0 0 0 0 ed841
CRC_24_BLE 24 65b 555555 1 1 0 c25a56
CRC_24_FLEXRAY_A 24 5d6dcb fedcba 0 0 0 7979bd
CRC_24_FLEXRAY_B 24 5d6dcb abcdef 0 0 0 1f23b8
CRC_24_INTERLAKEN 24 328b63 ffffff 0 0 ffffff b4f3e6
CRC_24_LTE_A 24 864cfb 0 0 0 0 cde703
CRC_24_LTE_B 24 800063 0 0 0 0 23ef52
CRC_24_OPENPGP 24 864cfb b704ce 0 0 0 21cf02
CRC_24_OS_9 24 800063 ffffff 0 0 ffffff 200fa5
CRC_30_CDMA 30 2030b9c7 3fffffff 0 0 3fffffff 4c34abf
CRC_31_PHILIPS 31 4c11db7 7fffffff 0 0 7fffffff ce9e46c
CRC_32_AIXM 32 814141ab 0 0 0 0 3010bf7f
CRC_32_AUTOSAR 32 f4acfb13 ffffffff 1 1 ffffffff 1697d06a
CRC_32_BASE91_D 32 a833982b ffffffff 1 1 ffffffff 87315576
CRC_32_BZIP2 32 4c11db7 ffffffff 0 0 ffffffff fc891918
CRC_32_CD_ROM_EDC 32 8001801b 0 1 1 0 6ec2edc4
CRC_32_CKSUM 32 4c11db7 0 0 0 ffffffff 765e7680
CRC_32_ISCSI 32 1edc6f41 ffffffff 1 1 ffffffff e3069283
CRC_32_ISO_HDLC 32 4c11db7 ffffffff 1 1 ffffffff cbf43926
CRC_32_JAMCRC 32 4c11db7 ffffffff 1 1 0 340bc6d9
CRC_32_MEF 32 741b8cd7 ffffffff 1 1 0 d2c22f51
CRC_32_MPEG_2 32 4c11db7 ffffffff 0 0 0 376e6e7
CRC_32_XFER 32 af 0 0 0 0 bd0be338
CRC_40_GSM 40 4820009 0 0 0 ffffffffff d4164fc646
CRC_64_ECMA_182 64 42f0e1eba9ea3693 0 0 0 0 6c40df5f0b497347
CRC_64_GO_ISO 64 1b ffffffffffffffff 1 1 ffffffffffffffff b90956c775a41001
CRC_64_MS 64 259c84cba6426349 ffffffffffffffff 1 1 0 75d4b74f024eceea
CRC_64_REDIS 64 ad93d23594c935a9 0 1 1 0 e9c6d914c4b8d9ca
CRC_64_WE 64 42f0e1eba9ea3693 ffffffffffffffff 0 0 ffffffffffffffff 62ec59e3f1a4f00a
CRC_64_XZ 64 42f0e1eba9ea3693 ffffffffffffffff 1 1 ffffffffffffffff 995dc9bbdf1939fa
CRC_82_DARC 82 308c0111011401440411 0 1 1 0 9ea83f625023801fd612
`

const algorithms = new Map<string, Algorithm>()
for (const line of parameters.trim().split('\n')) {
  const [name = '', width, polynomial, initial, reflectIn, reflectOut, xorOut, check] = line.split(' ')
  algorithms.set(name, {
    width: Number(width),
    polynomial: BigInt(`0x${polynomial}`),
    initial: BigInt(`0x${initial}`),
    reflectIn: reflectIn === '1',
    reflectOut: reflectOut === '1',
    xorOut: BigInt(`0x${xorOut}`),
    check: BigInt(`0x${check}`),
  })
}

export const crcNames: readonly string[] = [...algorithms.keys()]

/** The published check value of an algorithm, for `123456789`. */
export function knownCheck(name: string): bigint | undefined {
  return algorithms.get(name)?.check
}

const compiled = new Map<string, (bytes: Uint8Array) => bigint>()

/** The function of an algorithm; undefined if the name is unknown. */
export function findCrc(name: string): ((bytes: Uint8Array) => bigint) | undefined {
  const known = compiled.get(name)
  if (known !== undefined) return known
  const algorithm = algorithms.get(name)
  if (algorithm === undefined) return undefined
  const made = algorithm.width <= 32 ? narrow(algorithm) : wide(algorithm)
  compiled.set(name, made)
  return made
}

function reflected(value: bigint, width: number): bigint {
  let result = 0n
  for (let bit = 0; bit < width; bit++) if ((value >> BigInt(bit)) & 1n) result |= 1n << BigInt(width - 1 - bit)
  return result
}

/** Up to 32 bits: the register is in the upper bits, or, if reflected, in the lower ones. */
function narrow(algorithm: Algorithm): (bytes: Uint8Array) => bigint {
  const { width } = algorithm
  const shift = 32 - width
  const table = new Uint32Array(256)
  if (algorithm.reflectIn) {
    const polynomial = Number(reflected(algorithm.polynomial, width))
    for (let byte = 0; byte < 256; byte++) {
      let value = byte
      for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1
      table[byte] = value >>> 0
    }
  } else {
    const polynomial = Number(algorithm.polynomial) << shift
    for (let byte = 0; byte < 256; byte++) {
      let value = byte << 24
      for (let bit = 0; bit < 8; bit++) value = value < 0 ? (value << 1) ^ polynomial : value << 1
      table[byte] = value >>> 0
    }
  }
  const initial = algorithm.reflectIn
    ? Number(reflected(algorithm.initial, width))
    : (Number(algorithm.initial) << shift) >>> 0
  return (bytes) => {
    let register = initial
    for (let index = 0; index < bytes.length; index++) {
      const byte = bytes[index] as number
      register = algorithm.reflectIn
        ? (register >>> 8) ^ (table[(register ^ byte) & 255] as number)
        : (register << 8) ^ (table[((register >>> 24) ^ byte) & 255] as number)
    }
    let result = BigInt((algorithm.reflectIn ? register : register >>> shift) >>> 0)
    if (algorithm.reflectIn !== algorithm.reflectOut) result = reflected(result, width)
    return result ^ algorithm.xorOut
  }
}

function wide(algorithm: Algorithm): (bytes: Uint8Array) => bigint {
  const { width } = algorithm
  const bits = BigInt(width)
  const mask = (1n << bits) - 1n
  const table: bigint[] = []
  const polynomial = algorithm.reflectIn ? reflected(algorithm.polynomial, width) : algorithm.polynomial
  const top = 1n << (bits - 1n)
  for (let byte = 0; byte < 256; byte++) {
    let value = algorithm.reflectIn ? BigInt(byte) : BigInt(byte) << (bits - 8n)
    for (let bit = 0; bit < 8; bit++) {
      value = algorithm.reflectIn
        ? value & 1n
          ? (value >> 1n) ^ polynomial
          : value >> 1n
        : value & top
          ? ((value << 1n) ^ polynomial) & mask
          : (value << 1n) & mask
    }
    table.push(value)
  }
  const initial = algorithm.reflectIn ? reflected(algorithm.initial, width) : algorithm.initial
  return (bytes) => {
    let register = initial
    for (let index = 0; index < bytes.length; index++) {
      const byte = BigInt(bytes[index] as number)
      register = algorithm.reflectIn
        ? (register >> 8n) ^ (table[Number((register ^ byte) & 255n)] as bigint)
        : ((register << 8n) & mask) ^ (table[Number((register >> (bits - 8n)) ^ byte) & 255] as bigint)
    }
    if (algorithm.reflectIn !== algorithm.reflectOut) register = reflected(register, width)
    return register ^ algorithm.xorOut
  }
}
