// Timestamps in program syntax: RFC 3339 with a zone; a blank or `t` may replace the `T`.

import { Timestamp } from '../event/timestamp.ts'

const form = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

export function parseTimestampLiteral(text: string): Timestamp | undefined {
  const match = form.exec(text)
  if (match === null) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if (hour > 23 || minute > 59 || second > 60) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  const zoneHours = Number(match[9] ?? 0)
  const zoneMinutes = Number(match[10] ?? 0)
  if (zoneHours > 23 || zoneMinutes > 59) return undefined
  const offset = (zoneHours * 60 + zoneMinutes) * (match[8] === '-' ? -1 : 1)
  const fraction = (match[7] ?? '').padEnd(9, '0').slice(0, 9)
  const ms = date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + Number(fraction.slice(0, 3))
  return new Timestamp(ms, Number(fraction.slice(3)))
}
