// Names of time zones, such as `CET`, in times. Remap parses offsets only. Without a location, Go reads a name as UTC, whatever it is.

/** A format in which the text `UTC` replaces the name of a zone. */
export const withoutZoneName = (format: string): string => format.replaceAll('%Z', 'UTC')

/** The text of a time with its name of a zone replaced; an expression. */
export const zoneNameReplaced = (text: string): string => `replace(${text}, r'\\b[A-Z]{3,5}\\b', "UTC", count: 1)`

/** Whether times in a location have the same meaning as in UTC. */
export const isUtc = (location: string | undefined): boolean =>
  location === undefined || /^(?:UTC|GMT|Etc\/UTC|Local)?$/.test(location)

/** Whether a time zone with a name exists. */
export const isZone = (name: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
