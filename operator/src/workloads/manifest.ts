// Objects to apply, as a tree of cdk8s constructs: a workload is a construct, and its objects are its children. No files are written:
// the tree is converted to a list of objects in the order of their creation.

import { ApiObject, App, Chart } from 'cdk8s'
import type { Construct } from 'constructs'
import type { ObjectMeta } from '../api/object.ts'

/** An object as it is applied: only the fields that Penstock owns. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly [field: string]: unknown
}

/** A Kubernetes object in the tree. Its id is its identity, so adding an object twice throws. */
export class ObjectConstruct extends ApiObject {
  constructor(scope: Construct, manifest: Manifest) {
    const { kind, metadata } = manifest
    // Undefined members are omitted.
    super(scope, `${kind} ${metadata.namespace ?? ''} ${metadata.name}`, JSON.parse(JSON.stringify(manifest)))
  }
}

/** The objects that `compose` adds to the chart. */
export function synthesise(compose: (chart: Chart) => void): Manifest[] {
  const chart = new Chart(new App(), 'penstock')
  compose(chart)
  return chart.toJson() as Manifest[]
}
