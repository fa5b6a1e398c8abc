// Compatible versions of operator, agents and commands: those of the same or an adjacent minor version. Others are reported but
// still served, because rejecting them would stop installations that may work.

/** `0.3.1-rc.2` → [0, 3]; undefined for an invalid version. */
function minorOf(version: string): readonly [major: number, minor: number] | undefined {
  const [, major, minor] = /^v?(\d+)\.(\d+)(?:\.|$)/.exec(version) ?? []
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)]
}

/** Whether two versions differ by more than one minor version. An invalid version differs from none. */
export function isApart(one: string, other: string): boolean {
  const [a, b] = [minorOf(one), minorOf(other)]
  if (a === undefined || b === undefined) return false
  return a[0] !== b[0] || Math.abs(a[1] - b[1]) > 1
}

/** The message about agents whose version differs too much from the operator's; undefined if there are none. */
export function skewText(operator: string, agents: readonly string[]): string | undefined {
  const apart = agents.filter((version) => isApart(operator, version))
  if (apart.length === 0) return undefined
  const versions = [...new Set(apart)].sort()
  const shown = versions.length > 3 ? [...versions.slice(0, 3), 'others'] : versions
  const count = `${apart.length} ${apart.length === 1 ? 'agent runs' : 'agents run'}`
  return `${count} version ${shown.join(', ')}, which differs by more than one minor version from the operator's ${operator}. This is not supported: install one minor version after the other.`
}
