/* File systems whose files do not depend on the process that reads them, by the numbers that statfs returns. The file that includes this
 * one defines FILE_SYSTEM. The runner reads it, too (crates/launch/src/warm/refused.rs). */
FILE_SYSTEM(0xef53) /* ext2 to ext4 */
FILE_SYSTEM(0x58465342) /* XFS */
FILE_SYSTEM(0x9123683e) /* Btrfs */
FILE_SYSTEM(0x01021994) /* tmpfs */
FILE_SYSTEM(0x858458f6) /* ramfs */
FILE_SYSTEM(0x794c7630) /* overlayfs */
FILE_SYSTEM(0xf2f52010) /* F2FS */
FILE_SYSTEM(0x6969) /* NFS */
FILE_SYSTEM(0x65735546) /* FUSE */
FILE_SYSTEM(0x01021997) /* 9P */
FILE_SYSTEM(0x73717368) /* SquashFS */
FILE_SYSTEM(0xe0f5e1e2) /* EROFS */
FILE_SYSTEM(0x4d44) /* FAT */
FILE_SYSTEM(0x9660) /* ISO 9660 */
FILE_SYSTEM(0xf15f) /* eCryptfs */
FILE_SYSTEM(0x52654973) /* ReiserFS */
FILE_SYSTEM(0x1cd1) /* terminals */
FILE_SYSTEM(0x2fc12fc1) /* ZFS */
FILE_SYSTEM(0x61756673) /* aufs */
FILE_SYSTEM(0x6a656a62) /* shiftfs */
FILE_SYSTEM(0xbacbacbc) /* those of VMware */
FILE_SYSTEM(0xa501fcf5) /* VxFS */
FILE_SYSTEM(0xca451a4e) /* bcachefs */
FILE_SYSTEM(0xff534d42) /* CIFS */
FILE_SYSTEM(0xfe534d42) /* SMB2 */
FILE_SYSTEM(0x50495045) /* pipes */
FILE_SYSTEM(0x00c36400) /* Ceph */
FILE_SYSTEM(0x0bd00bd0) /* Lustre */
FILE_SYSTEM(0x47504653) /* GPFS */
FILE_SYSTEM(0x19830326) /* BeeGFS */
FILE_SYSTEM(0xaad7aaea) /* PanFS */
FILE_SYSTEM(0x20030528) /* OrangeFS */
FILE_SYSTEM(0x5346414f) /* AFS */
FILE_SYSTEM(0x01161970) /* GFS2 */
FILE_SYSTEM(0x7461636f) /* OCFS2 */
FILE_SYSTEM(0x3153464a) /* JFS */
FILE_SYSTEM(0x00003434) /* NILFS */
FILE_SYSTEM(0x24051905) /* UBIFS */
FILE_SYSTEM(0x15013346) /* UDF */
FILE_SYSTEM(0x0000482b) /* HFS+ */
FILE_SYSTEM(0x2011bab0) /* exFAT */
FILE_SYSTEM(0x5346544e) /* NTFS */
FILE_SYSTEM(0x7366746e) /* NTFS, the newer driver */
FILE_SYSTEM(0x786f4256) /* VirtualBox's shared folders */
FILE_SYSTEM(0x7c7c6673) /* those of Parallels */
