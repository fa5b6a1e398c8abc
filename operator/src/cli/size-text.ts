const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Formats bytes for people: at most three digits, and a unit. */
export function sizeText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 9.95 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}
