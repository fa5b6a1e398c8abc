// Processors that calculate hashes and ids.

import { flagIn, option, textIn, textsIn } from '../loki/context.ts'
import { below, textOf } from '../loki/tree.ts'
import { fieldOf, textOfField } from './conditions.ts'
import { block, failure, naming, type Processor, quiet, when } from './processor.ts'

const methods: Readonly<Record<string, string>> = {
  sha1: 'sha1(text)',
  md5: 'md5(text)',
  sha256: 'sha2(text, variant: "SHA-256")',
  sha384: 'sha2(text, variant: "SHA-384")',
  sha512: 'sha2(text, variant: "SHA-512")',
}

const encodings: Readonly<Record<string, (hash: string) => string>> = {
  hex: (hash) => hash,
  base64: (hash) => `encode_base64(decode_base16(${hash}) ?? "")`,
}

export const fingerprint: Processor = {
  name: 'fingerprint',
  becomes: '`sha2`, `sha1` or `md5`',
  options: {
    ...when,
    fields: 'the fields',
    method: 'the function; a gap for `xxhash`',
    target_field: 'the field',
    encoding: '`encode_base64` for `base64`; a gap for `base32`',
    ignore_missing: 'whether to leave out missing fields',
  },
  itself: { ...naming, ignore_failure: quiet.ignore_failure },
  build: (part, report) => {
    const method = (textIn(part, 'method') ?? 'sha256').toLowerCase()
    const call = methods[method]
    if (call === undefined) {
      const reason = `the method \`${method}\` gives a number here, not the same text`
      report.gap(
        part,
        `fingerprint: method ${method}`,
        reason,
        'Use the method `sha256`, or `xxhash` in a remap transform.',
      )
      return undefined
    }
    const encoding = (textIn(part, 'encoding') ?? 'hex').toLowerCase()
    const encode = encodings[encoding]
    if (encode === undefined) {
      const reason = `no function encodes a hash as \`${encoding}\``
      report.gap(part, `fingerprint: encoding ${encoding}`, reason, 'Use `hex` or `base64`.')
      return undefined
    }
    const names = [...new Set(textsIn(part, 'fields'))].sort()
    const target = `${fieldOf(textIn(part, 'target_field') ?? 'fingerprint')} = ${encode(call)}`
    const pieces = names.map((name) => [fieldOf(name), `"|${name}|" + ${textOfField(name)}`] as const)
    if (flagIn(part, 'ignore_missing') === true)
      return [
        'text = ""',
        ...pieces.map(([field, piece]) => block(`exists(${field})`, [`text = text + ${piece}`])),
        'text = text + "|"',
        target,
      ]
    // A missing field is a failure, after which the event continues as it is.
    const lines = [`text = ${pieces.map(([, piece]) => piece).join(' + ') || '""'} + "|"`, target]
    return pieces.length === 0 ? lines : [block(pieces.map(([field]) => `exists(${field})`).join(' && '), lines)]
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
