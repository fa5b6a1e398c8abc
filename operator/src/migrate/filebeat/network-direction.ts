// Processors that describe where an event comes from: the direction of its traffic, and the time zone of the machine.

import { textIn, textsIn } from '../loki/context.ts'
import { fieldOf } from './conditions.ts'
import { networkTest } from './networks.ts'
import { naming, type Processor, quiet, when } from './processor.ts'

export const networkDirection: Processor = {
  name: 'add_network_direction',
  becomes: '`ip_cidr_contains`',
  options: {
    ...when,
    source: 'the field with the address of the source',
    destination: 'the field with the address of the destination',
    target: 'the field for the direction',
    internal_networks: 'ranges of addresses',
  },
  itself: { ...naming, ignore_failure: quiet.ignore_failure },
  build: (part, report) => {
    const [source, destination] = ['source', 'destination'].map((name) => fieldOf(textIn(part, name) ?? ''))
    const isInternal = (field: string | undefined) =>
      networkTest(textsIn(part, 'internal_networks'), `(string(${field}) ?? "")`)
    const [from, to] = [isInternal(source), isInternal(destination)]
    if (from === undefined || to === undefined) {
      const reason = 'the name of a network is unknown'
      report.gap(part, 'add_network_direction: internal_networks', reason, 'Write a range of addresses.')
      return undefined
    }
    const isAddress = (field: string | undefined) =>
      `(is_ipv4(string(${field}) ?? "") || is_ipv6(string(${field}) ?? ""))`
    const target = fieldOf(textIn(part, 'target') ?? 'network.direction')
    return [
      `if ${isAddress(source)} && ${isAddress(destination)} {`,
      `  ${target} = if ${from} {`,
      `    if ${to} { "internal" } else { "outbound" }`,
      `  } else if ${to} { "inbound" } else { "external" }`,
      '}',
    ]
  },
}

export const addLocale: Processor = {
  name: 'add_locale',
  becomes: 'the time zone UTC, in which containers run',
  options: { ...when, format: 'an offset or a name' },
  itself: naming,
  build: (part, report) => {
    const reason = 'the old agent writes the time zone of its machine; containers run in UTC'
    report.replaced(part, 'add_locale', reason, 'Set `.event.timezone` to the time zone that the programs use.')
    return [`.event.timezone = "${textIn(part, 'format') === 'abbreviation' ? 'UTC' : '+00:00'}"`]
  },
}
