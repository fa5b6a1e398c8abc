// Folders of the node that the chart mounts into its pods. Agents mount folders of the node at the same path.

import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Old } from './old.ts'
import { listOf } from './tables.ts'

export interface Mount {
  /** The path in the container. */
  readonly path: string
  readonly hostPath: string
}

const withoutEnd = (path: string) => path.replace(/\/+$/, '')

/** The folders of the node in `extraVolumes` and `extraVolumeMounts` of chart values. */
export function mountsIn({ extraVolumes, extraVolumeMounts }: Table): readonly Mount[] {
  const volumes = listOf(extraVolumes).filter(isTable)
  return listOf(extraVolumeMounts)
    .filter(isTable)
    .flatMap(({ name, mountPath, subPath }) => {
      const hostPath = volumes.find((volume) => volume['name'] === name)?.['hostPath']
      const host = isTable(hostPath) ? hostPath['path'] : undefined
      if (typeof host !== 'string' || typeof mountPath !== 'string') return []
      const below = typeof subPath === 'string' ? `/${subPath}` : ''
      return [{ path: withoutEnd(mountPath), hostPath: withoutEnd(`${withoutEnd(host)}${below}`) }]
    })
}

export interface MountReport {
  readonly reason: string
  readonly nearest: string
}

/** The source of files with the paths of the node. @param onMount called for each mount whose files it reads */
export function onNode(old: Old, mounts: readonly Mount[], onMount: (report: MountReport) => void): Old {
  if (old.type !== 'file' || old.kind !== 'sources' || mounts.length === 0) return old
  const used = new Set<Mount>()
  const moved = (given: unknown): unknown => {
    if (typeof given !== 'string') return given
    const mount = mounts
      .filter(({ path }) => given === path || given.startsWith(`${path}/`))
      .toSorted((one, next) => next.path.length - one.path.length)[0]
    if (mount === undefined) return given
    used.add(mount)
    return `${mount.hostPath}${given.slice(mount.path.length)}`
  }
  const paths = Object.fromEntries(
    ['include', 'exclude'].flatMap((name) =>
      old.options[name] === undefined ? [] : [[name, listOf(old.options[name]).map(moved)]],
    ),
  )
  for (const { hostPath } of used)
    onMount({
      reason: `agents read the folder at its path on the node, \`${hostPath}\`, if they mount it`,
      nearest: `Add \`${hostPath}\` to \`spec.node.logPaths.extraReadOnly\` of the Agent.`,
    })
  return { ...old, options: { ...old.options, ...paths } }
}
