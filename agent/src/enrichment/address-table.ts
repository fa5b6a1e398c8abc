// Tables of IP addresses from MMDB databases: all fields (`mmdb`), or the standard fields of `geoip` for any kind of database. The library
// is loaded with the first such table.

import { createRequire } from 'node:module'
import type * as mmdb from 'mmdb-lib'
import { float, integer, setField, stringFromBytes, type Value, type ValueObject } from '../event/value.ts'
import { parseIp } from '../formats/ip.ts'
import type { LoadedTable } from './table.ts'

const require = createRequire(import.meta.url)

/** Opens a database; throws if the data is not valid. */
export function addressTable(data: Buffer, geoip: { readonly locale: string } | undefined): LoadedTable {
  const { Reader } = require('mmdb-lib') as typeof mmdb
  const reader = new Reader<mmdb.Response>(data)
  const kind = reader.metadata.databaseType
  return {
    find(condition, select) {
      const fields = Object.keys(condition)
      if (fields.length !== 1) return 'the condition must have exactly one field, the address'
      const address = condition[fields[0] as string]
      if (typeof address !== 'string') return 'the address must be a string'
      // Text that is not an address has no record.
      const record = parseIp(address) === undefined ? null : reader.get(address)
      if (record === null) return []
      const known = record as unknown as Readonly<Record<string, unknown>>
      const all = geoip === undefined ? (converted(known) as ValueObject) : geoipFields(kind, known, geoip.locale)
      if (select === undefined) return [all]
      const chosen: ValueObject = {}
      for (const name of select) setField(chosen, name, Object.hasOwn(all, name) ? all[name] : null)
      return [chosen]
    },
  }
}

function converted(given: unknown): Value {
  if (typeof given === 'number') return Number.isNaN(given) ? null : given
  if (typeof given === 'bigint') return BigInt.asIntN(64, given) === given ? integer(given) : float(Number(given))
  if (typeof given === 'string' || typeof given === 'boolean') return given
  if (given instanceof Uint8Array) return stringFromBytes(Buffer.from(given))
  if (Array.isArray(given)) return given.map(converted)
  if (typeof given !== 'object' || given === null) return null
  const fields: ValueObject = {}
  for (const [name, value] of Object.entries(given)) setField(fields, name, converted(value))
  return fields
}

function geoipFields(kind: string, record: unknown, locale: string): ValueObject {
  const at = (...path: (string | number)[]): unknown => {
    let value: unknown = record
    for (const name of path) value = (value as Record<string | number, unknown> | undefined)?.[name]
    return value
  }
  const plain = (...path: (string | number)[]): Value => converted(at(...path) ?? null)
  const decimal = (...path: string[]): Value => {
    const value = at(...path)
    return typeof value === 'number' ? float(value) : null
  }
  const name = (...path: (string | number)[]): Value => {
    const names = at(...path, 'names') as Readonly<Record<string, string>> | undefined
    return names?.[locale] ?? names?.['en'] ?? null
  }
  if (/ASN|ISP/.test(kind)) {
    return {
      autonomous_system_number: plain('autonomous_system_number'),
      autonomous_system_organization: plain('autonomous_system_organization'),
      isp: plain('isp'),
      organization: plain('organization'),
    }
  }
  if (kind.includes('Connection-Type')) return { connection_type: plain('connection_type') }
  if (kind.includes('Anonymous')) {
    const fields: ValueObject = {}
    const flags = [
      'anonymous',
      'anonymous_vpn',
      'hosting_provider',
      'public_proxy',
      'residential_proxy',
      'tor_exit_node',
    ]
    for (const flag of flags) fields[`is_${flag}`] = at(`is_${flag}`) === true
    return fields
  }
  return {
    city_name: name('city'),
    continent_code: plain('continent', 'code'),
    country_code: plain('country', 'iso_code'),
    country_name: name('country'),
    latitude: decimal('location', 'latitude'),
    longitude: decimal('location', 'longitude'),
    metro_code: plain('location', 'metro_code'),
    postal_code: plain('postal', 'code'),
    region_code: plain('subdivisions', 0, 'iso_code'),
    region_name: name('subdivisions', 0),
    timezone: plain('location', 'time_zone'),
  }
}
