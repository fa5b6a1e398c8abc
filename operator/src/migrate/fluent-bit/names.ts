// The names of plugins and of their instances.

import { grafanaLoki, isOfGrafana } from './grafana-loki.ts'
import { lastValue, type Section } from './sections.ts'

export function pluginOf(section: Section): string {
  const name = (lastValue(section, 'name') ?? '').toLowerCase()
  return name === 'loki' && isOfGrafana(section) ? grafanaLoki.name : name
}

export function nameOf(section: Section): string {
  return lastValue(section, 'alias') ?? `${pluginOf(section)}-${section.kind === 'filter' ? 'filter' : section.kind}`
}
