// Processors that calculate hashes and ids.

import { flagIn, option, textIn, textsIn } from '../loki/context.ts'
import { below, textOf } from '../loki/tree.ts'
import { fieldOf, textOfField } from './conditions.ts'
import { block, failure, naming, type Processor, quiet, when } from './processor.ts'

interface Method {
  /** Statements that set `hash` to the hexadecimal digits for `text`. */
  readonly lines: readonly string[]
  readonly bits: number
}

const digits = (call: string, bits: number): Method => ({ lines: [`hash = ${call}`], bits })

/** The digits of 64 bits, of which the function returns a number with a sign. */
const xxhash: Method = {
  lines: [
    'number = int(xxhash(text, variant: "XXH64")) ?? 0',
    'low = mod(number, 4294967296)',
    'if low < 0 { low = low + 4294967296 }',
    'high = to_int((number - low) / 4294967296)',
    'if high < 0 { high = high + 4294967296 }',
    'hash = slice!("0000000" + (format_int(high, 16) ?? ""), -8) + slice!("0000000" + (format_int(low, 16) ?? ""), -8)',
  ],
  bits: 64,
}

const methods: Readonly<Record<string, Method>> = {
  sha1: digits('sha1(text)', 160),
  md5: digits('md5(text)', 128),
  sha256: digits('sha2(text, variant: "SHA-256")', 256),
  sha384: digits('sha2(text, variant: "SHA-384")', 384),
  sha512: digits('sha2(text, variant: "SHA-512")', 512),
  xxhash,
}

/** Statements that replace the digits in `hash` by base 32. No function does it, so the digits become bits, and every five a sign. */
function base32(bits: number): readonly string[] {
  const signs = Math.ceil(bits / 5)
  const zeros = '0'.repeat(signs * 5 - bits)
  const padding = '='.repeat((8 - (signs % 8)) % 8)
  return [
    'bits = join(map_values(chunks(hash, 1)) -> |digit| { slice!("000" + (format_int(parse_int(digit, 16) ?? 0, 2) ?? ""), -4) }) ?? ""',
    `groups = map_values(chunks(bits + "${zeros}", 5)) -> |five| {`,
    '  place = parse_int(five, 2) ?? 0',
    '  slice!("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", place, place + 1)',
    '}',
    `hash = (join(groups) ?? "") + "${padding}"`,
  ]
}

const encodings: Readonly<Record<string, (bits: number) => readonly string[]>> = {
  hex: () => [],
  base64: () => ['hash = encode_base64(decode_base16(hash) ?? "")'],
  base32,
}

/** The value of a field as Filebeat hashes it. */
function hashed(name: string): string {
  if (name !== '@timestamp') return textOfField(name)
  const time = 'format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%d %H:%M:%S%.f +0000 UTC") ?? ""'
  return `replace(${time}, r'(\\.\\d*?)0+ ', "$\${1} ")`
}

export const fingerprint: Processor = {
  name: 'fingerprint',
  becomes: '`sha2`, `sha1`, `md5` or `xxhash`; an event without the fields is dropped, unless they are ignored',
  options: {
    ...when,
    fields: 'the fields',
    method: 'the function',
    target_field: 'the field',
    encoding: 'hexadecimal digits, `encode_base64`, or statements for `base32`',
    ignore_missing: 'whether to leave out missing fields',
  },
  itself: naming,
  build: (part, report) => {
    const [method, encoding] = [
      (textIn(part, 'method') ?? 'sha256').toLowerCase(),
      (textIn(part, 'encoding') ?? 'hex').toLowerCase(),
    ]
    const [call, encode] = [methods[method], encodings[encoding]]
    if (call === undefined || encode === undefined) {
      const subject = call === undefined ? `method ${method}` : `encoding ${encoding}`
      const known = Object.keys(call === undefined ? methods : encodings)
      report.gap(part, `fingerprint: ${subject}`, 'Filebeat has no such value', `Use one of ${known.join(', ')}.`)
      return undefined
    }
    const names = [...new Set(textsIn(part, 'fields'))].sort()
    const ignoresMissing = flagIn(part, 'ignore_missing') === true
    const isComplex = (field: string) => `is_object(${field}) || is_array(${field})`
    const lost = names
      .map(fieldOf)
      .flatMap((field) => [...(ignoresMissing ? [] : [`!exists(${field})`]), isComplex(field)])
    const pieces = names.map((name) => [fieldOf(name), `text = text + "|${name}|" + ${hashed(name)}`] as const)
    return [
      // Filebeat loses an event that it cannot hash.
      ...(lost.length === 0 ? [] : [`if ${lost.join(' || ')} { abort }`]),
      'text = ""',
      ...pieces.map(([field, piece]) => (ignoresMissing ? block(`exists(${field})`, [piece]) : piece)),
      'text = text + "|"',
      ...call.lines,
      ...encode(call.bits),
      `${fieldOf(textIn(part, 'target_field') ?? 'fingerprint')} = hash`,
    ]
  },
}

export const addId: Processor = {
  name: 'add_id',
  becomes: '`uuid_v4`',
  options: { ...when, target_field: 'the field', type: 'the form' },
  build: (part) => [`${fieldOf(textIn(part, 'target_field') ?? '@metadata._id')} = uuid_v4()`],
}

const protocols =
  '{ "icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "gre": 47, "ipv6-icmp": 58, "icmpv6": 58, "eigrp": 88, "ospf": 89, "pim": 103, "sctp": 132 }'

export const communityId: Processor = {
  name: 'community_id',
  becomes: '`community_id`',
  options: { ...when, fields: 'the fields of the flow', target: 'the field', seed: 'the seed of the hash' },
  itself: { ...naming, ignore_failure: quiet.ignore_failure, ignore_missing: quiet.ignore_missing },
  build: (part) => {
    const fields = option(part, 'fields')
    const at = (name: string, byDefault: string) => fieldOf(textOf(below(fields, name)) ?? byDefault)
    const target = fieldOf(textIn(part, 'target') ?? 'network.community_id')
    const number = (field: string) => `to_int(${field}) ?? -1`
    const text = (field: string) => `string(${field}) ?? ""`
    const transport = at('transport', 'network.transport')
    const iana = at('iana_number', 'network.iana_number')
    const seed = textIn(part, 'seed') ?? '0'
    const flow = `${text(at('source_ip', 'source.ip'))}, ${text(at('destination_ip', 'destination.ip'))}, protocol`
    const [type, code] = [at('icmp_type', 'icmp.type'), at('icmp_code', 'icmp.code')]
    const ports = [at('source_port', 'source.port'), at('destination_port', 'destination.port')] as const
    return [
      `if !exists(${target}) {`,
      `  protocol = to_int(${iana}) ?? -1`,
      `  if !exists(${iana}) { protocol = to_int(get(${protocols}, [downcase(${text(transport)})]) ?? ${transport}) ?? -1 }`,
      '  id = null',
      '  if includes([6, 17, 132], protocol) {',
      `    if exists(${ports[0]}) && exists(${ports[1]}) { id = community_id(${flow}, ${number(ports[0])}, ${number(ports[1])}, seed: ${seed}) ?? null }`,
      `  } else if includes([1, 58], protocol) && exists(${type}) && exists(${code}) {`,
      `    id = community_id(${flow}, ${number(type)}, ${number(code)}, seed: ${seed}) ?? null`,
      `  } else if protocol >= 0 { id = community_id(${flow}, seed: ${seed}) ?? null }`,
      `  if id != null { ${target} = id }`,
      '}',
    ]
  },
}

export const registeredDomain: Processor = {
  name: 'registered_domain',
  becomes: '`parse_etld`',
  options: {
    ...when,
    field: 'the field with the name',
    target_field: 'the field for the registered domain',
    target_etld_field: 'the field for the public suffix',
    target_subdomain_field: 'the field for the names before the registered domain',
  },
  itself: { ...naming, ignore_failure: quiet.ignore_failure, ignore_missing: quiet.ignore_missing },
  build: (part, _report, failed) => {
    const target = (name: string) => {
      const field = textIn(part, name)
      return field === undefined || field === '' ? undefined : fieldOf(field)
    }
    const [domain, suffix, names] = ['target_field', 'target_etld_field', 'target_subdomain_field'].map(target)
    if (domain === undefined && suffix === undefined && names === undefined) return []
    return [
      `host = replace(string(${fieldOf(textIn(part, 'field') ?? '')}) ?? "", r'\\.+$', "")`,
      'parts, error = parse_etld(host, plus_parts: 1)',
      ...(flagIn(part, 'ignore_failure') === true
        ? []
        : failure(
            flagIn(part, 'ignore_missing') === true
              ? '(error != null || parts.etld_plus == parts.etld) && host != ""'
              : 'error != null || parts.etld_plus == parts.etld',
            failed,
          )),
      // A name that is a public suffix itself is a failure.
      'if error == null && parts.etld_plus != parts.etld {',
      ...(domain === undefined ? [] : [`  ${domain} = parts.etld_plus`]),
      ...(suffix === undefined ? [] : [`  ${suffix} = parts.etld`]),
      ...(names === undefined
        ? []
        : [
            '  before = "." + (string(parts.etld_plus) ?? "")',
            `  if ends_with(host, before) { ${names} = slice(host, 0, length(host) - length(before)) ?? "" }`,
          ]),
      '}',
    ]
  },
}
