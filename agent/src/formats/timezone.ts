// Time zones: offsets of instants, and instants of local times, cached by day, because querying the time zone database for
// every event would cost more than the rest of the conversion.

import { BoundedMap } from '../bounded-map.ts'

const dayMs = 86_400_000
const monthMs = 30 * dayMs

export interface Zone {
  /** Name in the time zone database. */
  readonly name: string
  /** The offset of local time from UTC at an instant, in milliseconds. */
  offsetAt(ms: number): number
  /** The instant of a local time, which is passed as if it were UTC; undefined if there is none or it is ambiguous. */
  instantOf(localMs: number): number | undefined
  /** The abbreviation in use at an instant: `UTC`, `CEST`. */
  abbreviationAt(ms: number): string
}

export const utc: Zone = {
  name: 'UTC',
  offsetAt: () => 0,
  instantOf: (localMs) => localMs,
  abbreviationAt: () => 'UTC',
}

// Names can come from data, and most such names are invalid.
const found = new BoundedMap<Zone | 'none'>({ maxEntries: 1000, maxBytes: 1 << 20, sizeOf: () => 1000 })

/** The zone of a name in the time zone database, or of `local`; undefined if it is unknown. */
export function findZone(name: string): Zone | undefined {
  if (name === 'UTC') return utc
  if (name === 'local') return findZone(zoneName(name))
  let zone = found.get(name)
  if (zone === undefined) {
    zone = openZone(name) ?? 'none'
    found.set(name, zone)
  }
  return zone === 'none' ? undefined : zone
}

/** The zone that a program names: in the letter case of the database, or the local one for `local` and no name. */
export function zoneOfProgram(name: string): Zone | undefined {
  if (name === '' || name === 'local') return findZone('local')
  const zone = findZone(name)
  return zone === utc || zone?.name === name ? zone : undefined
}

/** The zone of an already validated name; UTC if this machine does not know it. */
export function zoneOrUtc(name: string): Zone {
  return findZone(name) ?? utc
}

/** The name of the zone that an option names; `local` is the zone of this machine. */
export function zoneName(name: string): string {
  return name === 'local' ? Temporal.Now.timeZoneId() : name
}

/** The problem of an option that names no zone. @param path path of the option */
export function zoneProblems(path: string, name: string | undefined) {
  if (name === undefined || findZone(name) !== undefined) return []
  const help = 'Use a name from the TZ database, such as `Europe/Berlin`, or `local`.'
  return [{ path, message: `\`${name}\` is not a time zone.`, help }]
}

function openZone(name: string): Zone | undefined {
  // Temporal also accepts offsets and complete dates as zones.
  if (!/^[A-Za-z]/.test(name)) return undefined
  try {
    if (epochZoned(0, name).offsetNanoseconds === 0 && /^(Etc\/)?(UTC|UCT|Zulu|Universal)$/.test(name)) return utc
  } catch {
    return undefined // unknown name; the caller reports it
  }
  return new DatabaseZone(name)
}

/** The first and last representable instants. */
const farthestMs = 8.64e15

function epochZoned(ms: number, zone: string): Temporal.ZonedDateTime {
  const within = Math.max(-farthestMs, Math.min(farthestMs, ms))
  return Temporal.Instant.fromEpochMilliseconds(within).toZonedDateTimeISO(zone)
}

class DatabaseZone implements Zone {
  readonly name: string
  #day = Number.NaN
  #offset = 0
  #localDay = Number.NaN
  #localOffset = 0
  /** By month and offset, because zones have changed their abbreviation without changing their offset. */
  readonly #abbreviations = new Map<number, string>()

  constructor(name: string) {
    this.name = epochZoned(0, name).timeZoneId
  }

  offsetAt(ms: number): number {
    const day = Math.floor(ms / dayMs)
    if (day === this.#day) return this.#offset
    const offset = this.#exactOffset(day * dayMs)
    if (offset !== this.#exactOffset((day + 1) * dayMs)) return this.#exactOffset(ms)
    this.#day = day
    this.#offset = offset
    return offset
  }

  instantOf(localMs: number): number | undefined {
    const day = Math.floor(localMs / dayMs)
    if (day === this.#localDay) return localMs - this.#localOffset
    // No offset exceeds one day: if it is equal one day before and two days after, it was constant in between.
    const before = this.#exactOffset((day - 1) * dayMs)
    const after = this.#exactOffset((day + 2) * dayMs)
    if (before === after) {
      this.#localDay = day
      this.#localOffset = before
      return localMs - before
    }
    const early = this.#exactOffset(localMs - before) === before
    const late = this.#exactOffset(localMs - after) === after
    if (early === late) return undefined
    return localMs - (early ? before : after)
  }

  abbreviationAt(ms: number): string {
    const offset = this.offsetAt(ms)
    const key = Math.floor(ms / monthMs) * 2 * dayMs + offset
    let text = this.#abbreviations.get(key)
    if (text === undefined) {
      text = abbreviation(this.name, ms, offset)
      // Instants can come from data.
      if (this.#abbreviations.size >= 1000) this.#abbreviations.clear()
      this.#abbreviations.set(key, text)
    }
    return text
  }

  #exactOffset(ms: number): number {
    // Historical offsets include seconds.
    return Math.round(epochZoned(ms, this.name).offsetNanoseconds / 1e6)
  }
}

// Each of these locales has the abbreviations of its part of the world, and writes `GMT+1` for all other zones.
const locales = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ', 'en-CA']

// Abbreviations missing in all locales, by hours ahead of UTC; and zones without an abbreviation in the database although a
// locale has one.
const abbreviations = new Map<string, Readonly<Record<number, string>>>()
const known: readonly (readonly [Readonly<Record<number, string>>, string])[] = [
  [{ 0: 'GMT' }, 'GMT GMT+0 GMT-0 GMT0 Etc/GMT'],
  [{ 0: 'GMT', 1: 'BST' }, 'Europe/London Europe/Belfast Europe/Guernsey Europe/Isle_of_Man Europe/Jersey GB GB-Eire'],
  [{ 0: 'GMT', 1: 'IST' }, 'Europe/Dublin Eire'],
  [{ 1: 'MET', 2: 'MEST' }, 'MET'],
  [{ 1: 'WAT' }, 'Africa/Lagos'],
  [{ 2: 'CAT' }, 'Africa/Maputo Africa/Harare'],
  [{ 2: 'IST', 3: 'IDT' }, 'Asia/Jerusalem Asia/Tel_Aviv Israel'],
  [{ 2: 'SAST' }, 'Africa/Johannesburg'],
  [{ 3: 'EAT' }, 'Africa/Nairobi'],
  [{ 3: 'MSK', 4: 'MSD' }, 'Europe/Moscow Europe/Kirov Europe/Simferopol Europe/Volgograd W-SU'],
  [{ 5: 'PKT', 6: 'PKST' }, 'Asia/Karachi'],
  [{ 5.5: 'IST' }, 'Asia/Kolkata Asia/Calcutta'],
  [{ 7: 'WIB' }, 'Asia/Jakarta Asia/Pontianak'],
  [{ 8: 'CST' }, 'Asia/Shanghai Asia/Chongqing Asia/Chungking Asia/Harbin Asia/Macau Asia/Macao Asia/Taipei PRC ROC'],
  [{ 8: 'HKT' }, 'Asia/Hong_Kong Hongkong'],
  [{ 8: 'PST' }, 'Asia/Manila'],
  [{ 8: 'WITA' }, 'Asia/Makassar Asia/Ujung_Pandang'],
  [{ 9: 'JST' }, 'Asia/Tokyo Japan'],
  [{ 9: 'KST' }, 'Asia/Seoul Asia/Pyongyang ROK'],
  [{ 9: 'WIT' }, 'Asia/Jayapura'],
  [{ 10: 'ChST' }, 'Pacific/Guam Pacific/Saipan'],
  [{ [-5]: 'CST', [-4]: 'CDT' }, 'America/Havana Cuba'],
  [
    { [-7]: 'MST', [-6]: 'MDT' },
    'America/Dawson America/Hermosillo America/Mazatlan America/Whitehorse Canada/Yukon Mexico/BajaSur',
  ],
  [{ [-10]: 'HST', [-9]: 'HDT' }, 'America/Adak America/Atka US/Aleutian'],
  [{ [-11]: 'SST' }, 'Pacific/Midway Pacific/Pago_Pago Pacific/Samoa US/Samoa'],
  [
    {},
    'America/Miquelon Antarctica/Casey Antarctica/Troll Asia/Colombo Asia/Dubai Asia/Muscat Australia/Eucla Australia/LHI Australia/Lord_Howe NZ-CHAT Pacific/Chatham',
  ],
]
for (const [texts, zones] of known) for (const zone of zones.split(' ')) abbreviations.set(zone, texts)

function abbreviation(zone: string, ms: number, offset: number): string {
  const listed = abbreviations.get(zone)
  const text = listed?.[offset / 3_600_000]
  if (text !== undefined) return text
  for (const locale of listed === undefined ? locales : []) {
    const parts = new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: 'short' }).formatToParts(ms)
    const text = parts.find((part) => part.type === 'timeZoneName')?.value
    if (text !== undefined && /^[A-Z]{2,5}$/.test(text) && (text !== 'GMT' || offset === 0)) return text
  }
  // Like the database for zones without an abbreviation.
  const minutes = Math.round(Math.abs(offset) / 60_000)
  const hours = String(Math.trunc(minutes / 60)).padStart(2, '0')
  const rest = minutes % 60 === 0 ? '' : String(minutes % 60).padStart(2, '0')
  return `${offset < 0 ? '-' : '+'}${hours}${rest}`
}
