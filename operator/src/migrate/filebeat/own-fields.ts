// Fields that Filebeat sets itself and that events of a Pipeline do not have. A condition or a name that reads them is a gap.

const absent: readonly RegExp[] = [
  /^(?:agent|beat|ecs|observer|cloud)(?:\.|$)/,
  /^host\.(?:name|hostname|id|ip|mac|architecture|containerized|os)(?:\.|$)/,
  /^log\.offset$/,
  /^prospector\.type$/,
  /^kubernetes\.(?:namespace_uid|namespace_annotations|node\.(?:uid|hostname|annotations)|cronjob)(?:\.|$)/,
  /^container\.runtime$/,
  /^docker\.container(?:\.|$)/,
]

/** Whether Filebeat sets a field that events here do not have. */
export const isOfFilebeat = (name: string): boolean => absent.some((pattern) => pattern.test(name))

export const ownFieldReport = (name: string) => ({
  reason: `Filebeat sets \`${name}\` itself; events of a Pipeline do not have it`,
  nearest: 'Set the field in a remap transform before this step, or use a field of the pod or the file.',
})
