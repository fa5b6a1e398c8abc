// Networks of link-local addresses, and networks of cloud services that provide credentials or configuration at other addresses.
// Tenants' Pipelines cannot connect to them, and generated NetworkPolicies exclude them for whole agents.

export const metadataNetworks = {
  v4: [
    '100.100.100.200/32', // metadata of Alibaba Cloud
    '168.63.129.16/32', // the host of Azure
    '169.254.0.0/16', // link-local; the metadata services of most clouds
    '192.0.0.192/32', // first-generation metadata service of Oracle Cloud
  ],
  v6: [
    'fd00:ec2::/32', // metadata and other services of AWS
    'fd20:ce::254/128', // metadata of Google Cloud
    'fe80::/10',
  ],
}
