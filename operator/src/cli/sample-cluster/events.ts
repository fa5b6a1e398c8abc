// Kubernetes Events from a file in the format of `kubectl get events -A -o yaml`. The API has each event in two groups, and kubectl
// prints the older one: fields are renamed like in the API server.

import { readFileSync } from 'node:fs'
import { readYamlDocuments } from '@penstock/agent/config'
import { PenstockError } from '@penstock/agent/errors'
import { isTable } from '@penstock/agent/schema'
import type { SampleObject } from './api-server.ts'

/** Fields of `v1` and their names in `events.k8s.io/v1`. */
const renamed: Readonly<Record<string, string>> = {
  message: 'note',
  involvedObject: 'regarding',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  source: 'deprecatedSource',
  reportingComponent: 'reportingController',
}

/** The Events in a YAML or JSON file: a list, or one per document. */
export function eventsOf(file: string): SampleObject[] {
  const { documents, problem } = readYamlDocuments(readFileSync(file, 'utf8'))
  const broken = problem ?? documents.flatMap(({ problems }) => problems)[0]
  if (broken !== undefined) throw new PenstockError('PEN_USAGE', `"${file}" cannot be read: ${broken.message}.`)
  const objects = documents.flatMap(({ value }) =>
    isTable(value) && Array.isArray(value['items']) ? value['items'] : [value],
  )
  return objects.map((object: unknown, index) => {
    if (!isTable(object) || object['kind'] !== 'Event' || !isTable(object['metadata'])) {
      const message = `"${file}" must contain Events, as \`kubectl get events -o yaml\` prints them; document ${index + 1} is not an Event.`
      throw new PenstockError('PEN_USAGE', message)
    }
    const isOlder = object['apiVersion'] === 'v1'
    const fields = Object.entries(object).map(([name, value]) => [isOlder ? (renamed[name] ?? name) : name, value])
    // The agent validates each field that it uses.
    return { ...Object.fromEntries(fields), apiVersion: 'events.k8s.io/v1' } as SampleObject
  })
}
